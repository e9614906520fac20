// Element-wise sums and copies, and the sum over ranks that reductions are made of. fp32; n elements. Outputs
// may be one of the inputs exactly, otherwise no overlap. Thread safe.
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

// y = a + b
void add(const float* a, const float* b, float* y, std::size_t n);

// y += x
void accumulate(const float* x, float* y, std::size_t n);

// x *= factor
void scale(float* x, float factor, std::size_t n);

// out = in (no overlap, or out is in)
void copy(const float* in, float* out, std::size_t n);

// out[i] = (((inputs[0][i] + inputs[1][i]) + inputs[2][i]) + …) * factor: in rank order for each element,
// averaged once, after the sum. ranks >= 1. Any cut of n into parts gives the same bits. out may be any one
// of the inputs.
void sum_ranks(const float* const* inputs, int ranks, float* out, std::size_t n, float factor);

}  // namespace shardscope::trainer::kernels
