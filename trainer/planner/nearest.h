// For a job that does not fit its memory, finds the nearest configurations that do, within a second or two,
// so that the user need not guess.
//
// The search tries other values of the wrap policy, checkpointing, strategy, offload, prefetch, limiter,
// layout, attention and batch (the same samples per step in more micro-batches): each alone, then in pairs,
// and so on. A set of changes is reported only if no part of it is enough. Whether a configuration fits
// follows from the memory account (allocated bytes) and the simulated allocator (reserved bytes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/plan/account.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::planner {

struct NearestOptions {
    std::size_t most = 3;  // configurations wanted
    double seconds = 1.5;  // time limit, after which no others are tried
};

struct NearestFit {
    std::vector<job::Override> changes;  // to the job, in the form of a command line
    std::size_t steps = 0;               // keys or groups of keys that change together
    plan::MemoryPeak peak;               // allocated
    double slower = 0;                   // time per sample over the job's own, by the cost model; 0: unknown
};

struct NearestFits {
    std::vector<NearestFit> fits;  // fewest changes first, then fastest
    NearestFit smallest;           // smallest possible configuration tried; may be the job itself
    std::size_t tried = 0;
    bool complete = true;  // false: the time ran out before all were tried
};

// `limit`: bytes of device memory that a rank may reserve. `cluster`: cost model to compare times with;
// memory does not depend on it. The job may be for any device; nothing is trained, no data is opened.
NearestFits nearest_fits(const job::Job& job, std::int64_t limit, const sim::Cluster& cluster,
                         const NearestOptions& options = {});

}  // namespace shardscope::trainer::planner
