// From a Plan's kernel operation to the function that does it. Runs on a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/plan/plan.h"

namespace shardscope::trainer {

// What is not in the Plan because it differs by rank or step.
struct KernelContext {
    int rank = 0;
    std::int64_t seed = 0;
    std::int64_t step = 0;  // 0 the first
};

// `data`: the addresses of op.args, in order.
void run_kernel(const Op& op, const std::vector<std::byte*>& data, const KernelContext& context);

}  // namespace shardscope::trainer
