// Replays of a lifted run, as recorded and under other settings: the memory and time that each would take.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/lift/lift.h"
#include "trainer/plan/account.h"
#include "trainer/planner/space.h"

namespace shardscope::trainer::lift {

struct Question {
    std::vector<planner::Given> given;  // keys of parallel, fsdp and ddp, each with the values to try
    double bandwidth = 0;               // bytes/s on the bus of every collective; 0: as recorded
    std::string cluster;                // cost model whose links carry collectives; empty: as recorded
    bool only = false;                  // vary no key that is not given
};

struct Replay {
    int number = 0;
    std::vector<job::Override> changes;  // differences from the recorded run; empty: none
    job::Job job;                        // not set if the replay is impossible
    std::string impossible;              // the reason, a sentence; empty: possible
    std::size_t units = 0;               // FSDP units, or DDP's buckets
    plan::MemoryPeak peak;               // allocated bytes, by the memory account
    std::string peak_unit;               // unit that holds most of the peak; empty: none
    std::int64_t peak_unit_bytes = 0;
    std::int64_t moved_bytes = 0;        // by collectives of a steady step, as full buffers
    std::int64_t reserved_bytes = -1;    // the most that the caching allocator reserved; -1: not simulated
    double step_s = 0;                   // duration of a steady step; 0: the trace has no times
    double kernel_s = 0, exposed_s = 0;  // its parts: kernels, communication outside kernels
    bool front = false;                  // on the Pareto front: no possible row is both smaller and faster
    int same_as = 0;                     // an earlier row with the same figures; 0: none

    bool can_be() const { return impossible.empty(); }
};

// Replays the recorded settings on the recorded cluster; its error is the baseline for all replays.
Replay replay_unmodified(const Lifted& lifted);

// The recorded cluster with the links and the bandwidth that the question gives.
sim::Cluster asked_cluster(const Lifted& lifted, const Question& question);

// Replays one set of changes.
Replay replay(const Lifted& lifted, const sim::Cluster& cluster, std::vector<job::Override> changes,
              int number);

// All configurations worth trying, or the requested ones; the first is the recorded run. Throws JobError if a
// key cannot be varied, ClusterError.
std::vector<std::vector<job::Override>> changes_to_try(const Lifted& lifted, const Question& question);
std::vector<Replay> replay_all(const Lifted& lifted, const sim::Cluster& cluster,
                               const std::vector<std::vector<job::Override>>& changes, int threads,
                               const std::atomic<bool>& stop,
                               const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace shardscope::trainer::lift
