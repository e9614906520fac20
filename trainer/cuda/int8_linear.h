// A Linear whose weight is held in int8 on a CUDA device: trainer/kernels/int8_linear.h. Bound by memory for
// the few rows of a text that is continued: each weight is read once for kRows of them.
#pragma once

#include <cstdint>

#include "trainer/cuda/device.h"

namespace shardscope::trainer::cuda {

// bias may be null.
void int8_linear_forward(const DeviceContext& device, const float* x, const std::int8_t* q,
                         const float* scales, const float* bias, float* y, int rows, int in, int out);

}  // namespace shardscope::trainer::cuda
