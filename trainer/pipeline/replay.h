// Replays a schedule with costs: each rank does its cells in order, each as soon as the rank is free and the
// results that it waits for have arrived. SEND, RECV and FSDP's actions take no time, but a result that is
// sent arrives after Costs::transfer. Exact: times are whole ticks (costs.h).
//
//     makespan = busy + idle,  idle = warm_up + peer + communication + drain  on each rank
//
// Idle time is counted within the makespan, which a step pays that ends for all ranks together (gradient
// norm, optimizer). Papers on zero-bubble schedules count only that within the rank's own span, from its
// first to its last action: peer + communication.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/pipeline/costs.h"
#include "trainer/pipeline/schedule.h"

namespace shardscope::trainer::pipeline {

struct ReplayedCell {
    std::int64_t begin = 0, end = 0;  // ticks
    std::int64_t computed = 0;        // when what it waits for had been computed; 0: it waits for nothing
    std::size_t at = 0;               // its first action (cell_at)
};

struct ReplayedRank {
    std::int64_t busy = 0;
    std::int64_t warm_up = 0;        // before the rank's first action
    std::int64_t peer = 0;           // within its span, while the rank that it waits for has not finished
    std::int64_t communication = 0;  // within its span, while what it waits for is being transferred
    std::int64_t drain = 0;          // after its last action
    int peak_in_flight = 0;  // chunks whose forward has begun and whose backward (B or W) has not ended
    std::vector<ReplayedCell> cells;  // of computations

    std::int64_t idle() const { return warm_up + peer + communication + drain; }
    std::int64_t idle_in_span() const { return peer + communication; }
};

struct ScheduleReplay {
    Costs costs;
    std::int64_t makespan = 0;
    std::vector<ReplayedRank> ranks;

    std::int64_t idle() const;  // of all ranks
    std::int64_t most_idle() const;
    int peak_in_flight() const;  // of any rank
    // Idle / (ranks * makespan).
    Fraction bubble() const;
};

// The schedule can run (check.h).
ScheduleReplay replay(const Schedule& schedule, const Costs& costs);

}  // namespace shardscope::trainer::pipeline
