// See bf16_matmul.h.
#include "trainer/kernels/bf16_matmul.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/core.h>

#include "trainer/kernels/blas.h"
#include "trainer/kernels/onednn.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {
namespace {

// Edge of the blocks: three of them in fp32 take 3 MiB; each element is converted once per 512
// multiplications.
constexpr int kEdge = 512;

// Converts a block of `rows` x `columns` of a matrix with `stride` elements per row to floats without gaps.
template <Narrow T>
SHARDSCOPE_VECTOR_CLONES void read_block(const T* from, int stride, float* to, int rows, int columns) {
    const std::size_t n = static_cast<std::size_t>(columns);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        floats_of(from + i * static_cast<std::size_t>(stride), n, to + i * n);
    }
}

template <Narrow T>
SHARDSCOPE_VECTOR_CLONES void write_block(const float* from, const T* bias, T* to, int stride, int rows,
                                          int columns) {
    const std::size_t n = static_cast<std::size_t>(columns);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* sums = from + i * n;
        T* out = to + i * static_cast<std::size_t>(stride);
        if (bias) {
            for (std::size_t j = 0; j < n; ++j) store(sums[j] + to_float(bias[j]), out[j]);
        } else {
            put(out, sums, n);
        }
    }
}

// Rows [row, row + rows) and columns [column, column + columns) of op(x); x is stored with `stride` elements
// per row.
template <Narrow T>
const float* operand(const T* x, bool transposed, int stride, int row, int column, int rows, int columns,
                     float* buffer) {
    if (transposed) {
        std::swap(row, column);
        std::swap(rows, columns);
    }
    read_block(x + static_cast<std::ptrdiff_t>(row) * stride + column, stride, buffer, rows, columns);
    return buffer;
}

}  // namespace

template <Narrow T>
void matmul_by_conversion(const MatmulShape& shape, const T* a, const T* b, const T* bias, T* c) {
    const Blas& blas = Blas::get();
    const auto floats = [](Purpose purpose, int rows, int columns) {
        return workspace_of<float>(purpose, static_cast<std::size_t>(std::min(rows, kEdge)) *
                                                static_cast<std::size_t>(std::min(columns, kEdge)));
    };
    float* block_a = floats(Purpose::operand_a, shape.m, shape.k);
    float* block_b = floats(Purpose::operand_b, shape.k, shape.n);
    float* block_c = floats(Purpose::product, shape.m, shape.n);
    for (int column = 0; column < shape.n; column += kEdge) {
        const int n = std::min(kEdge, shape.n - column);
        for (int row = 0; row < shape.m; row += kEdge) {
            const int m = std::min(kEdge, shape.m - row);
            std::fill_n(block_c, static_cast<std::size_t>(m) * static_cast<std::size_t>(n), 0.0f);
            for (int inner = 0; inner < shape.k; inner += kEdge) {
                const int k = std::min(kEdge, shape.k - inner);
                operand(a, shape.transpose_a, shape.transpose_a ? shape.m : shape.k, row, inner, m, k,
                        block_a);
                operand(b, shape.transpose_b, shape.transpose_b ? shape.k : shape.n, inner, column, k, n,
                        block_b);
                blas.sgemm(shape.transpose_a, shape.transpose_b, m, n, k, 1.0f, block_a,
                           shape.transpose_a ? m : k, block_b, shape.transpose_b ? k : n, 1.0f, block_c, n);
            }
            write_block(block_c, shape.bias ? bias + column : nullptr,
                        c + static_cast<std::ptrdiff_t>(row) * shape.n + column, shape.n, m, n);
        }
    }
}

template void matmul_by_conversion(const MatmulShape&, const Bf16*, const Bf16*, const Bf16*, Bf16*);
template void matmul_by_conversion(const MatmulShape&, const Fp16*, const Fp16*, const Fp16*, Fp16*);

void bf16_matmul(const MatmulShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias, Bf16* c) {
    const bool empty = shape.m == 0 || shape.n == 0 || shape.k == 0;
    if (empty) return matmul_by_conversion(shape, a, b, bias, c);
    if (OneDnn::get().fast_bf16()) return OneDnn::get().multiply(shape, a, b, bias, c);
    matmul_by_conversion(shape, a, b, bias, c);
}

const std::string& bf16_matmul_method() {
    static const std::string method = OneDnn::get().fast_bf16()
                                          ? OneDnn::get().bf16_description()
                                          : fmt::format("{} sgemm on converted blocks ({})",
                                                        Blas::get().core(), OneDnn::get().bf16_description());
    return method;
}

}  // namespace shardscope::trainer::kernels
