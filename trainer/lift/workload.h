// A lifted step as what a Program trains: modules whose forward and backward are what was recorded, so that
// every strategy and option is the one generator's of Plans.
#pragma once

#include <memory>

#include "trainer/lift/lifted.h"
#include "trainer/sharding/workload.h"

namespace shardscope::trainer::lift {

struct LiftedCosts {
    std::int64_t operation_ns = 0;  // of the host for each range that opens; what was recorded includes it
};

// `step` stays. `units`: the model is wrapped as it was recorded, whatever the job's policy.
std::unique_ptr<Workload> workload_of(const LiftedStep& step, LiftedCosts costs, bool units);

}  // namespace shardscope::trainer::lift
