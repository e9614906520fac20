// For a job that does not fit its memory: the configurations nearest to it that do, found within a second or
// two, so that a person need not guess.
//
// The search tries other values of the wrap policy, checkpointing, strategy, offload, prefetch, limiter,
// layout, the way attention is computed and the batch (the same samples per step in more micro-batches): each
// alone, then in pairs, and so on. A set of changes is reported only if none of its parts fits already. What
// fits is known from the memory account (what is allocated) and the simulated allocator (what it reserves).
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
    double seconds = 1.5;  // time limit, after which no more are tried
};

struct NearestFit {
    std::vector<Override> changes;  // to the job, in the form of a command line
    std::size_t steps = 0;          // keys or groups of keys that change together
    MemoryPeak peak;                // allocated
    double slower = 0;              // step time over that of the job, by the cost model; 0: not known
};

struct NearestFits {
    std::vector<NearestFit> fits;  // fewest changes first, then fastest
    NearestFit smallest;  // of all possible ones that were tried; the job itself where nothing is smaller
    std::size_t tried = 0;
    bool complete = true;  // false: the time ran out before all were tried
};

// `limit`: bytes of device memory that a rank may reserve. `cluster`: its cost model compares times; the
// memory does not depend on it. The job may be for any device; nothing is trained, no data is opened.
NearestFits nearest_fits(const Job& job, std::int64_t limit, const sim::Cluster& cluster,
                         const NearestOptions& options = {});

}  // namespace shardscope::trainer::planner
