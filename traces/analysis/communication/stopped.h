// Of a job that did not come to its end: which rank stopped first, and what the others waited for. Told by
// the ranks that were left (SHARD_STOPS) or, where all were killed, by where their traces end. Times in
// nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::traces {

struct Trace;

// The parts of processes are committed at least so often: what ends less far apart may have ended together.
inline constexpr std::int64_t kCommittedEvery = 1'000'000'000;  // ns

struct RankAtEnd {
    int rank = 0;
    std::string host;
    bool ended = true;            // its part was finished, not cut off
    std::int64_t last_ns = 0;     // the end of its last event
    std::int64_t last_step = -1;  // that it began; -1 none
    std::string last_collective;  // that it completed: "all_gather 12 of group 7"; empty: none
    // In what it waited: as it said itself, or the last collective that it has and the rank that stopped
    // first, which is in the group, has not. Empty: in nothing, or nobody knows.
    std::string waiting;
    bool said = false;  // by the rank itself
};

struct StopReport {
    bool stopped = false;    // and all below is known
    int first_rank = -1;     // its number
    std::string host;        // "" unknown
    bool told = false;       // by ranks that were left; else it is where the traces end
    bool lost = false;       // it was gone or silent; false: it said itself what is wrong, or it is not told
    std::string reason;      // a clause that can follow "rank 2 "; empty: nobody knows
    std::int64_t at_ns = 0;  // when the first rank was told of it or, where nobody was, its last event
    std::vector<RankAtEnd> ranks;
};

StopReport stop_report(const Trace& trace);

// "Rank 2 on node1 was the first to stop: (process 4711 on host node1) has ended." Empty where none did.
std::string stop_sentence(const StopReport& report);

}  // namespace shardscope::traces
