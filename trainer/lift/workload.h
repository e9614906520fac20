// A lifted step as the workload of a Program: modules whose forward and backward are the recorded ones, so
// that the ordinary Plan generator provides every strategy and option.
#pragma once

#include <memory>

#include "trainer/lift/lifted.h"
#include "trainer/sharding/workload.h"

namespace shardscope::trainer::lift {

struct LiftedCosts {
    std::int64_t operation_ns = 0;  // host time for each range that opens; recorded times include it
};

// `step` must outlive the result. `units`: the model is wrapped as recorded, regardless of the job's policy.
std::unique_ptr<Workload> workload_of(const LiftedStep& step, LiftedCosts costs, bool units);

}  // namespace shardscope::trainer::lift
