// Reductions over a buffer: the terms of a norm, the clip factor, and whether every value is finite. T is
// float, Bf16 or Fp16; n elements. Sums are in double in a fixed order. Thread safe.
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

// Sum of x^2. Not finite if an element is not.
template <class T>
double sum_of_squares(const T* x, std::size_t n);

// norm = sqrt(sums[0] + … + sums[count - 1]), added in that order; the factor is min(1, max_norm / (norm +
// 1e-6)), as in torch.nn.utils.clip_grad_norm_. A norm that is not finite gives a factor of 0 or NaN, as
// in PyTorch.
float clip_factor(const double* sums, std::size_t count, double max_norm, double* norm);

// Whether all elements are finite (no infinity, no NaN).
template <class T>
bool all_finite(const T* x, std::size_t n);

}  // namespace shardscope::trainer::kernels
