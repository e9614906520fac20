// Any trace as an SQLite database, for verbs that work on the file and not on columns: a database is taken as
// it is, another trace (Kineto's JSON, a memory snapshot ...) is imported to a temporary one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "traces/cli/arguments.h"
#include "traces/merge/work.h"

namespace shardscope::traces {

// Whether the file is an SQLite database, by its first bytes.
bool is_database(const std::string& path);

class AsDatabase {
  public:
    // Files, partial and max_size of the inputs count. `ours`: an export of Nsight Systems is imported too.
    // Throws StoreError, UsageError or Cancelled.
    AsDatabase(const Inputs& inputs, const WorkOptions& work, bool ours = false);
    ~AsDatabase();  // removes what it made
    AsDatabase(const AsDatabase&) = delete;
    AsDatabase& operator=(const AsDatabase&) = delete;

    const std::string& path() const { return path_; }
    bool imported() const { return !folder_.empty(); }

  private:
    void remove() noexcept;

    std::string path_, folder_;
};

}  // namespace shardscope::traces
