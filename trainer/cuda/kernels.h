// Launches a Plan's kernel operation on a CUDA device: the counterpart of the cpu executor's run_kernel
// (trainer/executor/cpu_kernels.h), asynchronous on the device's stream.
//
// Results equal the CPU's: bit for bit where an element is computed alone (initial values, dropout's masks,
// conversions, optimizers, sums of two …), and within rounding where sums have another order (norms, losses,
// gradients of weights, matmuls, attention) or the device has its own exponential. Everything is
// deterministic: no sum uses atomics.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/cuda/device.h"
#include "trainer/device/kernel_context.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::cuda {

// `data`: the device addresses of op.args, in order; null for an arg without a buffer. With op.checks_output
// a second kernel checks args[0] and sets the flag, which the device must be able to access, by
// compare-and-swap from -1 to op.module. Throws CudaError if a launch is refused, std::logic_error if the
// Plan contradicts itself.
void launch_kernel(const plan::Op& op, const std::vector<std::byte*>& data,
                   const device::KernelContext& context, const DeviceContext& device);

}  // namespace shardscope::trainer::cuda
