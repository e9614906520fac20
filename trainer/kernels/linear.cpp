// The linear layer: three matmuls and a sum over rows; see linear.h.
#include "trainer/kernels/linear.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "trainer/kernels/bf16_matmul.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/column_sums.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

namespace {

void product(const MatmulShape& s, const float* a, const float* b, const float* bias, float* c) {
    // The matmul is added to the contents of c, so the bias needs no pass of its own.
    for (int i = 0; s.bias && i < s.m; ++i) {
        std::memcpy(c + static_cast<std::ptrdiff_t>(i) * s.n, bias,
                    static_cast<std::size_t>(s.n) * sizeof(float));
    }
    Blas::get().sgemm(s.transpose_a, s.transpose_b, s.m, s.n, s.k, 1.0f, a, s.transpose_a ? s.m : s.k, b,
                      s.transpose_b ? s.k : s.n, s.bias ? 1.0f : 0.0f, c, s.n);
}

void product(const MatmulShape& s, const Bf16* a, const Bf16* b, const Bf16* bias, Bf16* c) {
    bf16_matmul(s, a, b, bias, c);
}

void product(const MatmulShape& s, const Fp16* a, const Fp16* b, const Fp16* bias, Fp16* c) {
    matmul_by_conversion(s, a, b, bias, c);
}

}  // namespace

template <class T>
void linear_forward(const T* x, const T* w, const std::type_identity_t<T>* b, T* y, int rows, int in,
                    int out) {
    product({false, true, b != nullptr, rows, out, in}, x, w, b, y);
}

template <class T>
void linear_backward_input(const T* dy, const T* w, T* dx, int rows, int in, int out) {
    product({false, false, false, rows, in, out}, dy, w, nullptr, dx);
}

template <class T>
void linear_backward_weight(const T* dy, const T* x, T* dw, int rows, int in, int out) {
    product({true, false, false, out, in, rows}, dy, x, nullptr, dw);
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void linear_backward_bias(const T* dy, T* db, int rows, int out) {
    const auto columns = static_cast<std::size_t>(out);
    sum_columns(static_cast<std::size_t>(rows), columns, db,
                [=](std::size_t i, std::size_t first, std::size_t width, float* partial)
                    SHARDSCOPE_INLINE_LAMBDA {
                        float buffer[kColumnTile];
                        const float* row = floats_of(dy + i * columns + first, width, buffer);
                        for (std::size_t j = 0; j < width; ++j) partial[j] += row[j];
                    });
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                  \
    template void linear_forward(const T*, const T*, const T*, T*, int, int, int); \
    template void linear_backward_input(const T*, const T*, T*, int, int, int);    \
    template void linear_backward_weight(const T*, const T*, T*, int, int, int);   \
    template void linear_backward_bias(const T*, T*, int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::kernels
