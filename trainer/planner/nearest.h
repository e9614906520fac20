// Where a job does not fit its memory: the configurations nearest to it that do, found within a second or
// two, so that a person need not guess.
//
// Tried are other values of the wrap policy, checkpointing, strategy, offload, prefetch, limiter, layout, the
// way attention is computed and the batch (the same samples of a step in more micro-batches): each alone,
// then in pairs, and so on. A set of changes is told only if none of its parts fits already. What fits is
// known from the memory account (what is allocated) and the simulated allocator (what it reserves).
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
    std::size_t most = 3;  // configurations that are wanted
    double seconds = 1.5;  // after which no more are tried
};

struct NearestFit {
    std::vector<Override> changes;  // to the job: as they stand on a command line
    std::size_t steps = 0;          // keys or groups of keys that change together
    MemoryPeak peak;                // allocated
    double slower = 0;              // step time over that of the job, by the cost model; 0: not known
};

struct NearestFits {
    std::vector<NearestFit> fits;  // fewest changes first, then the fastest
    NearestFit smallest;  // of all that were tried and can be; the job itself where nothing is smaller
    std::size_t tried = 0;
    bool complete = true;  // false: the time was over before all were tried
};

// `limit`: bytes of device memory that a rank may reserve. `cluster`: whose cost model compares times; the
// memory does not depend on it. A job of any device; nothing is trained, no data is opened.
NearestFits nearest_fits(const Job& job, std::int64_t limit, const sim::Cluster& cluster,
                         const NearestOptions& options = {});

}  // namespace shardscope::trainer::planner
