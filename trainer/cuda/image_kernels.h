// The part of the dispatch (kernels.h) for networks of images: convolutions, pooling, batch norms.
#pragma once

#include "trainer/cuda/device.h"
#include "trainer/device/kernel_context.h"

namespace shardscope::trainer::cuda {

// Launches the operation's kernels; false if it is none of these.
bool launch_image_kernel(const device::KernelOperands& operands, const DeviceContext& device);

}  // namespace shardscope::trainer::cuda
