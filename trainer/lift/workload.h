// A lifted step as the workload of a Program: modules whose forward and backward are the recorded ones, so
// that the ordinary Plan generator provides every strategy and option.
#pragma once

#include <memory>

#include "trainer/lift/lifted.h"
#include "trainer/sharding/workload.h"

namespace shardscope::trainer::lift {

struct LiftedCosts {
    std::int64_t operation_ns = 0;     // host time for each range that opens; recorded times include it
    std::int64_t step_ns = 0;          // host time per step beside what was recorded in the model
    double kernel_factor = 1;          // of the model's kernels: waiting for other ranks is spread over them
    double host_factor = 1;            // of the host's own time in the model
    std::int64_t optimizer_bytes = 0;  // what the optimizer's step allocates for itself
};

// `step` must outlive the result. `units`: the model is wrapped as recorded, regardless of the job's policy.
// `batch_factor`: the job's batch as a multiple of the recorded one.
std::unique_ptr<sharding::Workload> workload_of(const LiftedStep& step, LiftedCosts costs, bool units,
                                                double batch_factor = 1);

}  // namespace shardscope::trainer::lift
