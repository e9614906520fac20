// Dropout on a CUDA device: trainer/kernels/dropout.h, bit for bit, masks included. Units of T moved per
// element: 2. For Bf16, arithmetic (ten rounds per four elements) takes about as long as memory.
#pragma once

#include <cstddef>

#include "trainer/cuda/device.h"
#include "trainer/cuda/initialize.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

// y[i] = uniform(sequence, i) < p ? 0 : x[i] / (1 - p); 0 <= p < 1; y may be x.
template <class T>
void dropout(const DeviceContext& device, const T* x, T* y, std::size_t n, float p, const Sequence& sequence);

}  // namespace shardscope::trainer::cuda
