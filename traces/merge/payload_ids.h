// Schemas of binary NVTX payloads in a merged file. Static ids mean the same in every process; ids assigned
// at run time are unique within their process only, so that two parts may use one id for different layouts.
// Then the later part's schema, and whatever refers to it, gets a new id.
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
    using Key = std::pair<std::int64_t, std::int64_t>;  // (domain in the merged file, schema)
    std::map<Key, std::string> layouts_;                // of the merged file, as text
    std::int64_t next_ = std::int64_t{1} << 40;         // above the ids that programs get
};

}  // namespace shardscope::traces
