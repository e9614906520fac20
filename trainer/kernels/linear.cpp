// The linear layer: three matrix products and a sum over rows; see linear.h.
#include "trainer/kernels/linear.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/bf16_product.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

template <>
void linear_forward(const float* x, const float* w, const float* b, float* y, int rows, int in, int out) {
    // The product is added to what y holds, so the bias costs no pass of its own.
    if (b) {
        const std::size_t row_bytes = static_cast<std::size_t>(out) * sizeof(float);
        for (int i = 0; i < rows; ++i) std::memcpy(y + static_cast<std::ptrdiff_t>(i) * out, b, row_bytes);
    }
    Blas::get().sgemm(false, true, rows, out, in, 1.0f, x, in, w, in, b ? 1.0f : 0.0f, y, out);
}

template <>
void linear_backward_input(const float* dy, const float* w, float* dx, int rows, int in, int out) {
    Blas::get().sgemm(false, false, rows, in, out, 1.0f, dy, out, w, in, 0.0f, dx, in);
}

template <>
void linear_backward_weight(const float* dy, const float* x, float* dw, int rows, int in, int out) {
    Blas::get().sgemm(true, false, out, in, rows, 1.0f, dy, out, x, in, 0.0f, dw, in);
}

template <>
void linear_forward(const Bf16* x, const Bf16* w, const Bf16* b, Bf16* y, int rows, int in, int out) {
    bf16_product({false, true, b != nullptr, rows, out, in}, x, w, b, y);
}

template <>
void linear_backward_input(const Bf16* dy, const Bf16* w, Bf16* dx, int rows, int in, int out) {
    bf16_product({false, false, false, rows, in, out}, dy, w, nullptr, dx);
}

template <>
void linear_backward_weight(const Bf16* dy, const Bf16* x, Bf16* dw, int rows, int in, int out) {
    bf16_product({true, false, false, out, in, rows}, dy, x, nullptr, dw);
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void linear_backward_bias(const T* dy, T* db, int rows, int out) {
    const std::size_t row_count = static_cast<std::size_t>(rows);
    const std::size_t columns = static_cast<std::size_t>(out);
    for (std::size_t first = 0; first < columns; first += kColumnTile) {
        const std::size_t width = std::min(kColumnTile, columns - first);
        double total[kColumnTile] = {};
        for (std::size_t block = 0; block < row_count; block += kRowBlock) {
            const std::size_t end = std::min(block + kRowBlock, row_count);
            float partial[kColumnTile] = {};
            for (std::size_t i = block; i < end; ++i) {
                float buffer[kColumnTile];
                const float* row = floats_of(dy + i * columns + first, width, buffer);
                for (std::size_t j = 0; j < width; ++j) partial[j] += row[j];
            }
            for (std::size_t j = 0; j < width; ++j) total[j] += partial[j];
        }
        put_rounded(db + first, total, width);
    }
}

template void linear_backward_bias(const float*, float*, int, int);
template void linear_backward_bias(const Bf16*, Bf16*, int, int);

}  // namespace shardscope::trainer::kernels
