// How much a step of the job trains on, as far as the run's configuration says.
#pragma once

#include <cstdint>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// At least the ranks in the trace; a simulated run may show only some.
int ranks_of_job(const store::Trace& trace);

struct WorkSize {  // of one step of all ranks; 0: unknown
    double samples = 0, tokens = 0;
};
WorkSize work_of_step(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
