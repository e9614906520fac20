// The matmul of bfloat16 and fp16 matrices with fp32 sums, by the fastest method of the machine: of bfloat16
// oneDNN if it is installed and the processor's instructions for it are faster than fp32, else conversion of
// blocks to fp32 for the BLAS. Thread safe; each call runs only in its caller's thread. The same inputs
// always give the same bits on one machine; the methods differ in the order of the sums.
#pragma once

#include <string>
#include <tuple>

#include "trainer/kernels/elements.h"

namespace shardscope::trainer::kernels {

// c[m,n] = op(a)[m,k] * op(b)[k,n] + bias[n], all row-major without gaps; op transposes if requested: a is
// then stored as [k,m], b as [n,k].
struct MatmulShape {
    bool transpose_a = false, transpose_b = false, bias = false;
    int m = 0, n = 0, k = 0;
    // An order, for use as a map key.
    friend bool operator<(const MatmulShape& x, const MatmulShape& y) {
        const auto all = [](const MatmulShape& s) {
            return std::tie(s.transpose_a, s.transpose_b, s.bias, s.m, s.n, s.k);
        };
        return all(x) < all(y);
    }
};

// Uses the fastest method of this machine. `bias` is read only if shape.bias. Sizes may be 0: with k = 0
// the result is the bias, or 0.
void bf16_matmul(const MatmulShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias, Bf16* c);

// The same by conversion, even where a faster method is available; T is Bf16 or Fp16.
template <Narrow T>
void matmul_by_conversion(const MatmulShape& shape, const T* a, const T* b, const T* bias, T* c);

// The method that bf16_matmul uses here, such as "oneDNN 2.6.3 (AVX512_BF16)" or "SkylakeX sgemm on
// converted blocks (…why…)".
const std::string& bf16_matmul_method();

}  // namespace shardscope::trainer::kernels
