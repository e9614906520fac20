// Calls the function that computes a Plan's kernel operation. Runs on a worker.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/device/kernel_context.h"
#include "trainer/device/launch.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::executor {

// `data`: the addresses of op.args, in order; null for an arg without a buffer (a gradient that is not
// needed). Throws std::logic_error where the Plan contradicts itself, and what kernel_dim throws.
void run_kernel(const plan::Op& op, const std::vector<std::byte*>& data,
                const device::KernelContext& context);

// Runs a kernel, memcpy or memset on host memory, on the calling thread.
void execute(const device::Launch& launch);

}  // namespace shardscope::trainer::executor
