// A Plan in virtual time: the fourth interpreter. Nothing is computed, no data is opened; every operation
// takes what the cost model says, the device's queues and the host's waits are those of a real run, and the
// memory is counted by the same allocator. docs/simulation.md says what is modelled and what is not.
//
//   const Program program(job);
//   const SimResult result = simulate(program, load_cluster("h100_ib"));
//   result.average_step_s, result.of(rank).peak.bytes
//
// Cheap: milliseconds for a step of a few thousand operations, whatever the number of ranks (rank_classes.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/plan/account.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/cluster.h"
#include "trainer/sim/observer.h"
#include "trainer/sim/rank_classes.h"
#include "trainer/sim/script.h"

namespace shardscope::trainer::sim {

struct SimOptions {
    std::vector<SlowRank> slow_ranks;
    std::vector<SlowLink> slow_links;
    // Most device bytes that a rank may reserve, 0: no limit; beyond it simulate throws OutOfMemory, whose
    // sentence has `memory_place` ("into the … of …") and `memory_remedy` before the other remedies.
    std::int64_t memory_limit = 0;
    std::string memory_place, memory_remedy;
    // Every step is walked through; otherwise, once steps take equal time, the rest are taken to be equal.
    bool every_step = false;
};

// Collectives of one unit in one phase, in the last step that was walked through. Exposed: the part of their
// time in which no kernel of the rank runs.
struct UnitExposure {
    int unit = -1;
    Phase phase = Phase::none;
    Operation operation = Operation::other;
    std::int64_t count = 0, bytes = 0;
    double seconds = 0, exposed_s = 0;
};

// Windows as in docs/definitions.md: from the end of the previous step to the later of the host's and the
// device's end.
struct SimStep {
    double seconds = 0;
    double kernel_s = 0, copy_s = 0, communication_s = 0;  // unions of intervals, for work that it launched
    double exposed_communication_s = 0;                    // outside kernels
    std::int64_t peak_bytes = 0;
};

// What one class of ranks did; all its ranks did the same.
struct SimRanks {
    int representative = 0, ranks = 0;
    MemoryPeak peak;                        // allocated bytes, as RunResult::peaks
    std::int64_t active = 0, reserved = 0;  // peaks, as RunResult
    std::vector<SimStep> steps;             // those walked through
    std::vector<UnitExposure> exposures;    // most exposed first
};

struct SimResult {
    std::vector<SimRanks> classes;  // class 0 has rank 0
    std::vector<int> class_of;      // by rank
    std::int64_t steps = 0;         // in the run; the last SimStep represents those beyond
    double seconds = 0;             // all steps, rank 0
    double average_step_s = 0;
    double exposed_communication_s = 0;  // per average step, mean of all ranks
    double set_up_s = 0;

    const SimRanks& of(int rank) const {
        return classes[static_cast<std::size_t>(class_of[static_cast<std::size_t>(rank)])];
    }
};

// Throws ClusterError where the job's ranks do not fit the cluster, OutOfMemory (see SimOptions).
SimResult simulate(const Script& script, const Cluster& cluster, const SimOptions& options = {},
                   RunObserver* observer = nullptr);
SimResult simulate(const Program& program, const Cluster& cluster, const SimOptions& options = {},
                   RunObserver* observer = nullptr);

Script script_of(const Program& program);

// The job as it would be on the cluster: sets what load_job leaves to callers that know the cluster.
Job placed_on(Job job, const Cluster& cluster);

// What the job requests of its simulation: stragglers, and the memory of the cluster's devices as the limit
// where run.memory_limit gives none.
SimOptions options_of(const Job& job, const Cluster& cluster);

}  // namespace shardscope::trainer::sim
