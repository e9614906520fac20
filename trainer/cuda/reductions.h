// Reductions over a buffer on a CUDA device: trainer/kernels/reductions.h, but with sums in fp64 in
// another fixed order. T is float, Bf16 or Fp16. Bound by memory, one read of n elements (on GPUs with slow
// fp64, by the conversions to it).
#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

// *sum = sum of x^2, not finite if an element is not. `sum` is on the device.
template <class T>
void sum_of_squares(const DeviceContext& device, const T* x, std::size_t n, double* sum);

// *norm = sqrt(sums[0] + … + sums[count - 1]), added in that order; *factor = min(1, max_norm / (norm +
// 1e-6)). All on the device.
void clip_factor(const DeviceContext& device, const double* sums, std::size_t count, double max_norm,
                 double* norm, float* factor);

// x *= factor; if an element of the result is infinite or not a number, *found becomes 1.
void unscale(const DeviceContext& device, float* x, std::size_t n, float factor, float* found);

// If an element is infinite or not a number, *flag becomes `module`, unless it is already set (not -1).
template <class T>
void flag_not_finite(const DeviceContext& device, const T* x, std::size_t n, std::int32_t module,
                     std::int32_t* flag);
void flag_not_finite(const DeviceContext& device, const double* one, std::int32_t module, std::int32_t* flag);

}  // namespace shardscope::trainer::cuda
