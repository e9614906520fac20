// What gradients pass before and after they are sent in fewer bytes (sharding/hook_*.cpp). fp32; sums in
// double. Thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer::kernels {

// Gram-Schmidt: of the columns, in order, each loses its parts along those before it and is divided by its
// norm + epsilon. As PyTorch's powerSGD_hook, but the parts are taken away twice: where a column depends on
// the ones before it, what is left of it is rounding, which the second time makes orthogonal to them. With
// epsilon 0 a column of zeros stays zero; a row of zeros becomes one that is orthogonal to the others: what
// is multiplied by it would never be seen again.
void orthogonalize_columns(float* matrix, std::size_t rows, std::size_t columns, float epsilon);
void orthogonalize_rows(float* matrix, std::size_t rows, std::size_t columns, float epsilon);

// The k of the n numbers with the largest |x|, k <= n: their places, in rising order, and values, which
// become 0 in x. Of equal ones the first are taken; a NaN is larger than any number. n < 2^31.
void select_largest(float* x, std::size_t n, std::size_t k, std::int32_t* places, float* values);

// y[0 … n) = factor times the sum of the ranks' values at their places: k of each rank, one rank behind the
// other, added in the order of ranks.
void add_selected(const std::int32_t* places, const float* values, std::size_t k, int ranks, float factor,
                  float* y, std::size_t n);

// --- signs -------------------------------------------------------------------------------------------------
//
// Numbers as a scale and a bit each: 1 for +scale (0 included), 0 for -scale. Bit i is bit i % 32 of word
// i / 32; `first` is the bit of the first of the n numbers. Numbers whose `variance` is 0 have never had a
// gradient: they are left out, and are 0.

// The error becomes error + x - what its bit stands for; returns the scale, the root of the mean square of
// error + x. The words' other bits stay.
float compress_signs(const float* x, float* error, const float* variance, std::size_t n, std::uint32_t* words,
                     std::size_t first);

// y += +-scale
void add_signs(const std::uint32_t* words, std::size_t first, float scale, float* y, std::size_t n);

// y = +-scale, or 0
void expand_signs(const std::uint32_t* words, std::size_t first, float scale, const float* variance, float* y,
                  std::size_t n);

}  // namespace shardscope::trainer::kernels
