// Reductions over a buffer: the pieces of a norm, the clip factor, and whether every value is finite. T is
// float or Bf16; n elements. Sums are in double with a fixed order. Thread safe.
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

// Sum of x^2. Not finite where an element is not.
template <class T>
double sum_of_squares(const T* x, std::size_t n);

// norm = sqrt(sums[0] + … + sums[count - 1]), added in that order; the factor is min(1, max_norm / (norm +
// 1e-6)), as torch.nn.utils.clip_grad_norm_ has it. A norm that is not finite gives a factor that is 0 or
// NaN, as there.
float clip_factor(const double* sums, std::size_t count, double max_norm, double* norm);

// Whether there is no infinity and no NaN among them.
template <class T>
bool all_finite(const T* x, std::size_t n);

}  // namespace shardscope::trainer::kernels
