// Element-wise sums, products, conversions and copies, and the sum over ranks that reductions use. T is
// float, Bf16 or Fp16 (arithmetic in fp32, one rounding of each result); n elements. Outputs may be exactly
// one of the inputs; no other overlap. Thread safe.
#pragma once

#include <cstddef>

#include "trainer/kernels/elements.h"

namespace shardscope::trainer::kernels {

// y = a + b
template <class T>
void add(const T* a, const T* b, T* y, std::size_t n);

// y += x; X is float or T, or T is float.
template <class X, class T>
void accumulate(const X* x, T* y, std::size_t n);

// y -= x
template <class T>
void subtract(const T* x, T* y, std::size_t n);

// x *= factor
template <class T>
void scale(T* x, float factor, std::size_t n);

// y = x, rounded to the nearest.
template <Narrow T>
void cast(const float* x, T* y, std::size_t n);

// y = x, exactly.
template <Narrow T>
void cast(const T* x, float* y, std::size_t n);

// out = in; they may be the same, but must not overlap otherwise.
template <class T>
void copy(const T* in, T* out, std::size_t n);

// out[i] = (((inputs[0][i] + inputs[1][i]) + inputs[2][i]) + …) * factor: in rank order for each element,
// averaged once, after the sum. ranks >= 1. Any division of n into parts gives the same bits. out may be any
// one of the inputs. Narrow types are summed in fp32 and rounded once.
template <class T>
void sum_ranks(const T* const* inputs, int ranks, T* out, std::size_t n, double factor);

// out[i] = the largest of inputs[r][i]; out may be any one of the inputs.
void max_ranks(const float* const* inputs, int ranks, float* out, std::size_t n);

// sum_ranks with sums and factor in double.
void sum_ranks(const double* const* inputs, int ranks, double* out, std::size_t n, double factor);

}  // namespace shardscope::trainer::kernels
