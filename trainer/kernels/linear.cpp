// The linear layer: three matmuls and a sum over rows; see linear.h.
#include "trainer/kernels/linear.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "trainer/kernels/bf16_matmul.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/column_sums.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

namespace {

// Rows of weights side by side, so that additions do not wait for each other.
constexpr std::size_t kTogether = 4;

SHARDSCOPE_INLINE void add_products(FloatLanes& sums, const FloatLanes& x, const float* w) {
    FloatLanes lanes;
    std::memcpy(&lanes, w, sizeof lanes);
    sums += x * lanes;
}

// The sum of x[i] w[i] from `first` on, added to the lanes' sums.
SHARDSCOPE_INLINE float sum_of(const FloatLanes& sums, const float* x, const float* w, std::size_t first,
                               std::size_t n) {
    float lanes[kLanes];
    std::memcpy(lanes, &sums, sizeof lanes);
    for (std::size_t l = 0; first + l < n; ++l) lanes[l] += x[first + l] * w[first + l];
    return add_lanes(lanes);
}

SHARDSCOPE_VECTOR_CLONES void read_once(const float* x, const float* w, const float* bias, float* y,
                                        std::size_t rows, std::size_t in, std::size_t out) {
    for (std::size_t j = 0; j < out; j += kTogether) {
        const auto weights = [=](std::size_t q)
                                 SHARDSCOPE_INLINE_LAMBDA { return w + std::min(j + q, out - 1) * in; };
        const float *w0 = weights(0), *w1 = weights(1), *w2 = weights(2), *w3 = weights(3);
        for (std::size_t r = 0; r < rows; ++r) {
            const float* row = x + r * in;
            FloatLanes s0{}, s1{}, s2{}, s3{};
            std::size_t k = 0;
            for (; k + kLanes <= in; k += kLanes) {
                FloatLanes own;
                std::memcpy(&own, row + k, sizeof own);
                add_products(s0, own, w0 + k);
                add_products(s1, own, w1 + k);
                add_products(s2, own, w2 + k);
                add_products(s3, own, w3 + k);
            }
            const float sums[kTogether] = {sum_of(s0, row, w0, k, in), sum_of(s1, row, w1, k, in),
                                           sum_of(s2, row, w2, k, in), sum_of(s3, row, w3, k, in)};
            for (std::size_t q = 0; q < kTogether && j + q < out; ++q)
                y[r * out + j + q] = sums[q] + (bias ? bias[j + q] : 0.0f);
        }
    }
}

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
void linear_forward_of_few(const T* x, const T* w, const std::type_identity_t<T>* b, T* y, int rows, int in,
                           int out) {
    if constexpr (std::is_same_v<T, float>) {
        if (rows <= kFewRows) {
            return read_once(x, w, b, y, static_cast<std::size_t>(rows), static_cast<std::size_t>(in),
                             static_cast<std::size_t>(out));
        }
    }
    linear_forward(x, w, b, y, rows, in, out);
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
#define SHARDSCOPE_INSTANTIATE(T)                                                         \
    template void linear_forward(const T*, const T*, const T*, T*, int, int, int);        \
    template void linear_forward_of_few(const T*, const T*, const T*, T*, int, int, int); \
    template void linear_backward_input(const T*, const T*, T*, int, int, int);           \
    template void linear_backward_weight(const T*, const T*, T*, int, int, int);          \
    template void linear_backward_bias(const T*, T*, int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::kernels
