// A recorded run in a form that can be replayed under other settings: a step of one rank without its
// sharding, the recorded times as costs, and the recorded settings.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/lift/host_engine.h"
#include "trainer/lift/lifted.h"
#include "trainer/lift/optimizer_memory.h"
#include "trainer/lift/rank_skew.h"
#include "trainer/lift/step_lifter.h"
#include "trainer/lift/workload.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/cluster.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::trainer::lift {

// A trace that cannot be lifted. The message is one sentence: which trace, what it lacks, how to record it.
class LiftError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct Lifted {
    std::string file;
    LiftedStep step;
    LiftedCosts costs;
    sim::Cluster cluster;                 // with figures from the trace
    std::vector<job::Override> settings;  // the recorded run's
    bool units = false;                   // no wrap policy reproduces its units: they are wrapped as recorded
    std::string wrap;                     // "module:Block", "root", or "as recorded"

    int rank = 0, ranks = 1;      // the step's rank number, number of ranks
    int steps = 0;                // steps analysed
    bool modules = false;         // the module tree is known
    bool memory = false;          // allocations are known: peaks are complete
    bool ours = false;            // our trainer recorded it
    bool fsdp = false;            // recorded under FSDP
    bool hosts = false;           // the ranks' threads computed themselves, without a device
    bool blocking = false;        // and waited for each of FSDP's collectives
    RankSkew skew;                // of such ranks
    double unseen_waiting_s = 0;  // waiting beside what follows from it, at each place where ranks meet
    double host_overlap_s = 0;    // transfers beside the recorded operators, which share the cores, per step
    OptimizerMemory optimizer;    // what its step allocates for itself
    HostEngine engine;            // FSDP's work on their threads
    std::int64_t batch = 0;       // samples per rank and micro-batch; 0: unknown
    ParametersFrom parameters = ParametersFrom::nothing;
    bool times = true;     // the trace has durations; false: only the order of events, and peaks
    double step_s = 0;     // median, recorded
    double waiting_s = 0;  // waiting for other ranks per step, outside kernels; 0: none, or only one rank
                           // known
    std::int64_t peak_bytes = -1;    // recorded; -1 unknown
    std::vector<std::string> notes;  // sentences: what is unknown, and how to record it
};

// Throws LiftError, ClusterError.
Lifted lift(const traces::store::Trace& trace);

// The job of the recorded run, with `changes` applied after its own settings. Throws JobError.
job::Job job_of(const Lifted& lifted, const std::vector<job::Override>& changes);
// `lifted` must outlive the result. Throws JobError.
sharding::Program program_of(const Lifted& lifted, const job::Job& job);

}  // namespace shardscope::trainer::lift
