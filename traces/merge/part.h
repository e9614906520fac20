// One input of merge or slice: a trace opened for reading, and what must be known about it before a row is
// copied. It is a Shardscope file of any schema version, or an export of Nsight Systems.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/merge/clock_fit.h"
#include "traces/schema/enums.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::merge {

// The pid of a process, from its serialized form.
inline std::int64_t pid_number(std::int64_t global_pid) {
    return global_pid >> 24 & 0xFFFFFF;
}
// The machine: the two highest bytes of a serialized process or thread.
inline std::int64_t machine_of(std::int64_t serialized) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(serialized) >> 48);
}

struct PartRank {
    std::int64_t rank = 0, device = 0, global_pid = 0, global_tid = 0;
    std::string host;
};

// The smallest and the largest number in use; empty if there is none.
struct NumberSpan {
    std::int64_t first = 0, last = -1;
    bool empty() const { return last < first; }
    void add(std::int64_t number);
};

struct Part {
    explicit Part(const std::string& path);  // throws StoreError

    std::string path;
    store::Database database;
    bool ours = false;  // whether it has Shardscope's own tables
    bool ended = true;  // whether its run ended
    std::int64_t dropped = 0;
    std::int64_t utc_ns = 0, system_ns = 0;  // clocks at its time 0; 0: unknown
    std::int64_t end_ns = 0;                 // of the capture, or of the last event
    std::int64_t rows = 0;                   // approximate number of rows in its tables of events
    // Measurements of its clock; of the first host's, if a merged trace has several.
    std::vector<ClockMeasure> measures;

    std::vector<PartRank> ranks;  // sorted by rank; for an export, one made up for each process
    std::map<std::int64_t, std::int64_t> rank_of_thread;         // serialized thread -> rank
    std::map<std::int64_t, std::string> processes;               // serialized process -> name
    std::map<std::int64_t, std::string> hosts;                   // machine -> name
    std::vector<std::pair<std::string, std::string>> run_facts;  // SHARD_RUN

    // Whether the table exists and is neither a view nor a temporary stand-in.
    bool has_table(std::string_view table);

  private:
    void read_clocks();
    void read_measures();
    void read_ranks();
    void make_up_ranks();
    void read_processes();
    void read_extent();
};

}  // namespace shardscope::traces::merge
