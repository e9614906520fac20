// The linear layer: three matrix products and a sum over rows; see linear.h.
#include "trainer/kernels/linear.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "trainer/kernels/blas.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

void linear_forward(const float* x, const float* w, const float* b, float* y, int rows, int in, int out) {
    // The product is added to what y holds, so the bias costs no pass of its own.
    if (b) {
        const std::size_t row_bytes = static_cast<std::size_t>(out) * sizeof(float);
        for (int i = 0; i < rows; ++i) std::memcpy(y + static_cast<std::size_t>(i) * out, b, row_bytes);
    }
    Blas::get().sgemm(false, true, rows, out, in, 1.0f, x, in, w, in, b ? 1.0f : 0.0f, y, out);
}

void linear_backward_input(const float* dy, const float* w, float* dx, int rows, int in, int out) {
    Blas::get().sgemm(false, false, rows, in, out, 1.0f, dy, out, w, in, 0.0f, dx, in);
}

void linear_backward_weight(const float* dy, const float* x, float* dw, int rows, int in, int out) {
    Blas::get().sgemm(true, false, out, in, rows, 1.0f, dy, out, x, in, 0.0f, dw, in);
}

SHARDSCOPE_VECTOR_CLONES
void linear_backward_bias(const float* dy, float* db, int rows, int out) {
    const std::size_t row_count = static_cast<std::size_t>(rows);
    const std::size_t columns = static_cast<std::size_t>(out);
    for (std::size_t first = 0; first < columns; first += kColumnTile) {
        const std::size_t width = std::min(kColumnTile, columns - first);
        double total[kColumnTile] = {};
        for (std::size_t block = 0; block < row_count; block += kRowBlock) {
            const std::size_t end = std::min(block + kRowBlock, row_count);
            float partial[kColumnTile] = {};
            for (std::size_t i = block; i < end; ++i) {
                const float* row = dy + i * columns + first;
                for (std::size_t j = 0; j < width; ++j) partial[j] += row[j];
            }
            for (std::size_t j = 0; j < width; ++j) total[j] += partial[j];
        }
        for (std::size_t j = 0; j < width; ++j) db[first + j] = static_cast<float>(total[j]);
    }
}

}  // namespace shardscope::trainer::kernels
