// A recorded run as something that can be replayed under other settings: a step of one rank apart from its
// sharding, the recorded times as costs, and the settings that it ran under.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/lift/lifted.h"
#include "trainer/lift/step_lifter.h"
#include "trainer/lift/workload.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/cluster.h"

namespace shardscope::traces {
struct Trace;
}

namespace shardscope::trainer::lift {

// A trace that cannot be lifted; one sentence: which, what it lacks, how to record it.
class LiftError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct Lifted {
    std::string file;
    LiftedStep step;
    LiftedCosts costs;
    sim::Cluster cluster;            // whose figures are the trace's
    std::vector<Override> settings;  // of the recorded run
    bool units = false;              // its units follow no policy: they are wrapped as recorded
    std::string wrap;                // "module:Block", "root", or "as recorded"

    int rank = 0, ranks = 1;  // whose step it is, of how many
    int steps = 0;            // that were looked at
    bool modules = false;     // the module tree is known
    bool memory = false;      // allocations are known: peaks are whole
    ParametersFrom parameters = ParametersFrom::nothing;
    double step_s = 0;     // median, recorded
    double waiting_s = 0;  // for other ranks, of a step, that no kernel hid; 0: none, or one rank is known
    std::int64_t peak_bytes = -1;    // recorded; -1 unknown
    std::vector<std::string> notes;  // sentences: what could not be known, and how to record it
};

// Throws LiftError, ClusterError.
Lifted lift(const traces::Trace& trace);

// The job of the recorded run with other settings behind its own. Throws JobError.
Job job_of(const Lifted& lifted, const std::vector<Override>& changes);
// `lifted` stays. Throws JobError.
Program program_of(const Lifted& lifted, const Job& job);

}  // namespace shardscope::trainer::lift
