// Runs a Plan in virtual time: the fourth interpreter. Nothing is computed and no data is opened; every
// operation takes the time that the cost model gives, the device's queues and the host's waits are those of a
// real run, and the same allocator counts the memory. docs/simulation.md lists what is modelled.
//
//   const Program program(job);
//   const SimResult result = simulate(program, load_cluster("h100_ib"));
//   result.average_step_s, result.of(rank).peak.bytes
//
// Takes milliseconds for a step of a few thousand operations, for any number of ranks (rank_classes.h).
#pragma once

#include <array>
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
    std::vector<job::SlowRank> slow_ranks;
    std::vector<job::SlowLink> slow_links;
    // The most device bytes that a rank may reserve; 0: no limit. Beyond it simulate throws OutOfMemory,
    // whose message has `memory_place` ("into the … of …") and, before other remedies, `memory_remedy`.
    std::int64_t memory_limit = 0;
    std::string memory_place, memory_remedy;
    // Simulates every step; otherwise, once steps take equal time, the rest are assumed to be equal.
    bool every_step = false;
};

// Collectives of one unit in one phase, in the last simulated step. Exposed: the part of their time in which
// no kernel of the rank runs.
struct UnitExposure {
    int unit = -1;
    plan::Phase phase = plan::Phase::none;
    plan::Operation operation = plan::Operation::other;
    std::int64_t count = 0, bytes = 0;
    double seconds = 0, exposed_s = 0;
};

// Windows as in docs/definitions.md: from the end of the previous step to the later of the host's and the
// device's end.
struct SimStep {
    double seconds = 0;
    // Unions of intervals of the step's work; copies of files are none of the device's.
    double kernel_s = 0, copy_s = 0, communication_s = 0;
    double exposed_communication_s = 0;  // outside kernels
    std::int64_t peak_bytes = 0;
};

// The result for one class of ranks, whose ranks all do the same.
struct SimRanks {
    int representative = 0, ranks = 0;
    plan::MemoryPeak peak;                  // allocated bytes, like RunResult::peaks
    std::int64_t active = 0, reserved = 0;  // peaks, like RunResult's
    std::vector<SimStep> steps;             // the simulated ones
    SimStep steady;                         // the last one, or the mean of the last ones that repeat
    std::vector<UnitExposure> exposures;    // most exposed first
    // The last step's exposed communication by group (StepTimes::exposed_by_group).
    std::array<double, plan::kGroupNames.size()> exposed_by_group{};
};

struct SimResult {
    std::vector<SimRanks> classes;  // class 0 has rank 0
    std::vector<int> class_of;      // by rank
    std::int64_t steps = 0;         // in the run; SimRanks::steady stands for those beyond
    double seconds = 0;             // all steps, rank 0
    double average_step_s = 0;
    double exposed_communication_s = 0;  // per step, mean over steps and ranks
    double utilization = 0;              // share of the last step in which a device's kernels run, mean
    double set_up_s = 0;

    const SimRanks& of(int rank) const {
        return classes[static_cast<std::size_t>(class_of[static_cast<std::size_t>(rank)])];
    }
};

// Throws ClusterError if the job's ranks do not fit the cluster, OutOfMemory (see SimOptions).
SimResult simulate(const Script& script, const Cluster& cluster, const SimOptions& options = {},
                   RunObserver* observer = nullptr);
SimResult simulate(const sharding::Program& program, const Cluster& cluster, const SimOptions& options = {},
                   RunObserver* observer = nullptr);

Script script_of(const sharding::Program& program);

// The cluster that the job names, on whose devices its ranks are. Throws ClusterError.
Cluster load_cluster(const job::Job& job);

// The job as it would run on the cluster: sets what load_job leaves to callers that know the cluster.
job::Job placed_on(job::Job job, const Cluster& cluster);

// The options that the job requests: slow ranks and links, and the memory limit: the smaller of
// run.memory_limit (if set) and a rank's part of the memory of the cluster's devices.
SimOptions options_of(const job::Job& job, const Cluster& cluster);

}  // namespace shardscope::trainer::sim
