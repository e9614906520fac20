// From a Plan's kernel operation to the function that does it. Runs on a worker.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/device/kernel_context.h"
#include "trainer/device/launch.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

// `data`: the addresses of op.args, in order; null for an arg without a buffer (a gradient that nobody
// wants). Throws std::logic_error where the Plan contradicts itself, and what kernel_dim throws.
void run_kernel(const Op& op, const std::vector<std::byte*>& data, const KernelContext& context);

// A kernel, memcpy or memset on host memory, by the thread that calls.
void execute(const Launch& launch);

}  // namespace shardscope::trainer
