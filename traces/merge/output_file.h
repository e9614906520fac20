// The file that merge and slice write: under another name until it is whole, then finished as a recorded one
// is (sorted, indexed, summed up) and renamed. Whatever goes wrong before leaves nothing, and an older file
// of the name as it was. For its owner only (0600).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/merge/work.h"
#include "traces/store/columns/trace.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {

struct Part;
class RowIds;

struct OutputFacts {
    std::int64_t duration_ns = 0, dropped = 0;
};

class OutputFile {
  public:
    // Throws StoreError where `path` may not be written (DatabaseWriter::check_output).
    OutputFile(const std::string& path, bool overwrite, std::int64_t utc_ns, std::int64_t system_ns);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    Database& database() { return *database_; }

    void add_fact(const std::string& key, const std::string& value);             // SHARD_RUN
    void add_note(std::int64_t time_ns, int severity, const std::string& text);  // DIAGNOSTIC_EVENT
    void add_strings(const StringTable& strings);
    // An export has no table of ranks; there each process is one, and gets its row in SHARD_RANKS.
    void add_ranks(const Part& part, RowIds& ids);
    // The sentence for a failure of this file, which nobody knows by its other name.
    std::string told(const std::string& sentence) const;

    // Throws Cancelled, or StoreError where the disk is full.
    void finish(const OutputFacts& facts, const WorkOptions& options, double share_done);

  private:
    std::string path_, temporary_;
    bool overwrite_;
    std::optional<Database> database_;
};

}  // namespace shardscope::traces
