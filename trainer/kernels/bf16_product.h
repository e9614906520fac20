// The matrix product of bfloat16 matrices with fp32 sums, by the fastest way of the machine: the processor's
// tile registers (AMX), else oneDNN where it is there and AVX512_BF16 is faster than fp32, else conversion of
// blocks to fp32 for the BLAS. Thread safe; each call runs in its caller's thread alone. The same inputs give
// the same bits at any time on one machine; the ways differ by the order of the sums.
#pragma once

#include <string>
#include <tuple>

#include "trainer/kernels/bf16.h"

namespace shardscope::trainer::kernels {

// c[m,n] = op(a)[m,k] * op(b)[k,n] + bias[n], all row-major without gaps; op transposes where asked: a is
// then stored as [k,m], b as [n,k].
struct ProductShape {
    bool transpose_a = false, transpose_b = false, bias = false;
    int m = 0, n = 0, k = 0;
    // An order, for tables of them.
    friend bool operator<(const ProductShape& x, const ProductShape& y) {
        const auto all = [](const ProductShape& s) {
            return std::tie(s.transpose_a, s.transpose_b, s.bias, s.m, s.n, s.k);
        };
        return all(x) < all(y);
    }
};

// The faster way of this machine. `bias` is read only where shape.bias. Sizes may be 0: k = 0 gives the bias,
// or 0.
void bf16_product(const ProductShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias, Bf16* c);

// By conversion, wherever the other would do too.
void bf16_product_by_conversion(const ProductShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias,
                                Bf16* c);

// What bf16_product uses here, as "AMX tiles" or "SkylakeX sgemm on converted blocks (…why…)".
const std::string& bf16_product_way();

}  // namespace shardscope::trainer::kernels
