// Kernels of the 1-bit optimizers, on the segments of a slot that every rank holds whole. Runs on a worker.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/executor/cpu_kernels.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::executor {

// compress_signs, average_signs, expand_signs and those whose names begin with onebit.
void run_onebit(const plan::Op& op, const std::vector<std::byte*>& data,
                const device::KernelContext& context);

}  // namespace shardscope::trainer::executor
