// A job that ended early: which rank stopped first, and what the others waited for. Taken from the reports of
// the remaining ranks (SHARD_STOPS) or, if all were killed, from where their traces end. Times in
// nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// The longest time between commits of a process's data: ends that are closer together may have been
// simultaneous.
inline constexpr std::int64_t kCommittedEvery = 1'000'000'000;  // ns

struct RankAtEnd {
    int rank = 0;
    std::string host;
    bool ended = true;            // its part of the trace was finished, not cut off
    std::int64_t last_ns = 0;     // the end of its last event
    std::int64_t last_step = -1;  // the last step that it began; -1 none
    std::string last_collective;  // the last that it completed: "all_gather 12 of group 7"; empty: none
    // What it was waiting in, as it reported; else its last collective that is missing on the rank that
    // stopped first, although that is a member of the group. Empty: nothing, or unknown.
    std::string waiting;
    bool said = false;  // `waiting` was reported by the rank itself
};

struct StopReport {
    bool stopped = false;  // if false, nothing below is set
    int first_rank = -1;   // its number
    std::string host;      // "" unknown
    bool told = false;     // reported by remaining ranks; else inferred from where the traces end
    bool lost = false;     // it was gone or silent; false: it reported its own error, or nothing was reported
    std::string reason;    // a clause that can follow "rank 2 "; empty: unknown
    std::int64_t at_ns = 0;  // when a rank first learned of it, else the last event of the stopped rank
    std::vector<RankAtEnd> ranks;
};

StopReport stop_report(const store::Trace& trace);

// "Rank 2 on node1 was the first to stop: (process 4711 on host node1) has ended." Empty if no rank stopped.
std::string stop_sentence(const StopReport& report);

}  // namespace shardscope::traces::analysis
