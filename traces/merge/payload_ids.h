// Schemas of binary NVTX payloads in a merged file. Static ids mean the same in every process; the ids that
// are given out while a program runs count within its process, so that two parts may use one for different
// layouts. Then the later part's schema, and whatever refers to it, gets a new id.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "traces/merge/row_ids.h"

namespace shardscope::traces {

struct Part;

class PayloadIds {
  public:
    // Sets ids.schemas; ids.domains must be set.
    void assign(Part& part, RowIds& ids);

  private:
    using Key = std::pair<std::int64_t, std::int64_t>;  // the file's domain, schema
    std::map<Key, std::string> layouts_;                // of the file, as text
    std::int64_t next_ = std::int64_t{1} << 40;         // above what programs are given
};

}  // namespace shardscope::traces
