// The file that merge and slice write: under a temporary name until it is complete, then finished like a
// recorded one (sorted, indexed, summed up) and renamed. A failure before that leaves nothing behind, and
// leaves an older file of the same name untouched. Only its owner may read it (0600).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/merge/work.h"
#include "traces/store/columns/trace.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::merge {

struct Part;
class RowIds;

struct OutputFacts {
    std::int64_t duration_ns = 0, dropped = 0;
};

class OutputFile {
  public:
    // Throws StoreError if `path` may not be written (DatabaseWriter::check_output).
    OutputFile(const std::string& path, bool overwrite, std::int64_t utc_ns, std::int64_t system_ns);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    store::Database& database() { return *database_; }

    void add_fact(const std::string& key, const std::string& value);             // SHARD_RUN
    void add_note(std::int64_t time_ns, int severity, const std::string& text);  // DIAGNOSTIC_EVENT
    void add_strings(const store::StringTable& strings);
    // An export has no table of ranks: each of its processes is a rank and gets a row in SHARD_RANKS.
    void add_ranks(const Part& part, RowIds& ids);
    // The sentence with the temporary name replaced by the file's own name, which the user knows.
    std::string told(const std::string& sentence) const;

    // Throws Cancelled, or StoreError if the disk is full.
    void finish(const OutputFacts& facts, const WorkOptions& options, double share_done);

  private:
    std::string path_, temporary_;
    bool overwrite_;
    std::optional<store::Database> database_;
};

}  // namespace shardscope::traces::merge
