// Dropout, forward and backward. The mask is a pure function of (seed, stream, index): the backward and
// a recomputation compute it again, so that it is never stored, and is the same on every rank that holds
// element `first_index + i`. T is float, Bf16 or Fp16 (arithmetic in fp32); n elements; y may be x. Thread
// safe. Srivastava et al.: "Dropout: a simple way to prevent neural networks from overfitting", JMLR 2014
// (inverted: kept elements are scaled).
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer::kernels {

// y[i] = uniform(seed, stream, first_index + i) < p ? 0 : x[i] / (1 - p), with random.h's uniform; 0 <= p
// < 1. The gradient has the same form: dx = dropout of dy with the same arguments.
template <class T>
void dropout(const T* x, T* y, std::size_t n, float p, std::uint64_t seed, std::uint64_t stream,
             std::uint64_t first_index);

}  // namespace shardscope::trainer::kernels
