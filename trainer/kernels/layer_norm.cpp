// Layer norm; see layer_norm.h. A row is read from memory once and stays in the cache for its later passes.
#include "trainer/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {

template <class T>
SHARDSCOPE_VECTOR_CLONES void layer_norm_forward(const T* x, const T* gamma, const T* beta, T* y, float* mean,
                                                 float* rstd, int rows, int cols, float eps) {
    const std::size_t n = static_cast<std::size_t>(cols);
    float* buffers = workspace_of<float>(Purpose::rows, 4 * n);
    const float* factor = floats_of(gamma, n, buffers);
    const float* shift = floats_of(beta, n, buffers + n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* in = floats_of(x + i * n, n, buffers + 2 * n);
        float* out = floats_for(y + i * n, buffers + 3 * n);
        const float center = lane_sum(n, [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return in[j]; }) /
                             static_cast<float>(cols);
        const float variance = lane_sum(n,
                                        [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA {
                                            const float d = in[j] - center;
                                            return d * d;
                                        }) /
                               static_cast<float>(cols);
        const float inverse = 1.0f / std::sqrt(variance + eps);
        for (std::size_t j = 0; j < n; ++j) out[j] = (in[j] - center) * inverse * factor[j] + shift[j];
        put(y + i * n, out, n);
        mean[i] = center;
        rstd[i] = inverse;
    }
}

// With xhat = (x - mean) rstd and g = dy gamma:  dx = rstd (g - mean(g) - xhat mean(g xhat)), means over the
// row.
template <class T>
SHARDSCOPE_VECTOR_CLONES void layer_norm_backward_input(const T* dy, const T* x, const T* gamma,
                                                        const float* mean, const float* rstd, T* dx, int rows,
                                                        int cols) {
    const std::size_t n = static_cast<std::size_t>(cols);
    float* buffers = workspace_of<float>(Purpose::rows, 4 * n);
    const float* factor = floats_of(gamma, n, buffers);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* gradient = floats_of(dy + i * n, n, buffers + n);
        const float* in = floats_of(x + i * n, n, buffers + 2 * n);
        float* out = floats_for(dx + i * n, buffers + 3 * n);
        const float center = mean[i];
        const float inverse = rstd[i];
        const float mean_g =
            lane_sum(n, [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return gradient[j] * factor[j]; }) /
            static_cast<float>(cols);
        const float mean_gx = lane_sum(n,
                                       [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA {
                                           return gradient[j] * factor[j] * ((in[j] - center) * inverse);
                                       }) /
                              static_cast<float>(cols);
        for (std::size_t j = 0; j < n; ++j) {
            const float xhat = (in[j] - center) * inverse;
            out[j] = (gradient[j] * factor[j] - mean_g - xhat * mean_gx) * inverse;
        }
        put(dx + i * n, out, n);
    }
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void layer_norm_backward_parameters(const T* dy, const T* x, const float* mean,
                                                             const float* rstd, T* dgamma, T* dbeta, int rows,
                                                             int cols) {
    const std::size_t row_count = static_cast<std::size_t>(rows);
    const std::size_t columns = static_cast<std::size_t>(cols);
    for (std::size_t first = 0; first < columns; first += kColumnTile) {
        const std::size_t width = std::min(kColumnTile, columns - first);
        double total_gamma[kColumnTile] = {};
        double total_beta[kColumnTile] = {};
        for (std::size_t block = 0; block < row_count; block += kRowBlock) {
            const std::size_t end = std::min(block + kRowBlock, row_count);
            float partial_gamma[kColumnTile] = {};
            float partial_beta[kColumnTile] = {};
            for (std::size_t i = block; i < end; ++i) {
                float buffers[2][kColumnTile];
                const float* gradient = floats_of(dy + i * columns + first, width, buffers[0]);
                const float* in = floats_of(x + i * columns + first, width, buffers[1]);
                const float center = mean[i];
                const float inverse = rstd[i];
                for (std::size_t j = 0; j < width; ++j) {
                    partial_gamma[j] += gradient[j] * ((in[j] - center) * inverse);
                    partial_beta[j] += gradient[j];
                }
            }
            for (std::size_t j = 0; j < width; ++j) {
                total_gamma[j] += partial_gamma[j];
                total_beta[j] += partial_beta[j];
            }
        }
        put_rounded(dgamma + first, total_gamma, width);
        put_rounded(dbeta + first, total_beta, width);
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                         \
    template void layer_norm_forward(const T*, const T*, const T*, T*, float*, float*, int, int, float);  \
    template void layer_norm_backward_input(const T*, const T*, const T*, const float*, const float*, T*, \
                                            int, int);                                                    \
    template void layer_norm_backward_parameters(const T*, const T*, const float*, const float*, T*, T*,  \
                                                 int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::kernels
