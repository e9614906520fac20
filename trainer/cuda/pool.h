// Pooling of fp32 images on a CUDA device: trainer/kernels/pool.h. Every element has one thread that adds in
// the CPU's order, except that the means are of sums in another fixed order: max pooling and the gradients
// match the CPU bit for bit. Bound by memory.
#pragma once

#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/kernels/window.h"

namespace shardscope::trainer::cuda {

void max_pool_forward(const DeviceContext& device, const float* x, float* y, std::int32_t* places,
                      const kernels::ImageShape& image, const kernels::Window& window);
void max_pool_backward(const DeviceContext& device, const float* dy, const std::int32_t* places, float* dx,
                       const kernels::ImageShape& image, const kernels::Window& window);

void adaptive_average_forward(const DeviceContext& device, const float* x, float* y,
                              const kernels::ImageShape& image, int side);
void adaptive_average_backward(const DeviceContext& device, const float* dy, float* dx,
                               const kernels::ImageShape& image, int side);

}  // namespace shardscope::trainer::cuda
