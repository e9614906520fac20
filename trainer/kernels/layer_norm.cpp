// Layer norm; see layer_norm.h. A row is read from memory once and stays in the cache for its later passes.
#include "trainer/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

SHARDSCOPE_VECTOR_CLONES
void layer_norm_forward(const float* x, const float* gamma, const float* beta, float* y, float* mean,
                        float* rstd, int rows, int cols, float eps) {
    const std::size_t n = static_cast<std::size_t>(cols);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* in = x + i * n;
        float* out = y + i * n;
        const float center = lane_sum(n, [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return in[j]; }) /
                             static_cast<float>(cols);
        const float variance = lane_sum(n,
                                        [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA {
                                            const float d = in[j] - center;
                                            return d * d;
                                        }) /
                               static_cast<float>(cols);
        const float inverse = 1.0f / std::sqrt(variance + eps);
        for (std::size_t j = 0; j < n; ++j) out[j] = (in[j] - center) * inverse * gamma[j] + beta[j];
        mean[i] = center;
        rstd[i] = inverse;
    }
}

// With xhat = (x - mean) rstd and g = dy gamma:  dx = rstd (g - mean(g) - xhat mean(g xhat)), means over the
// row.
SHARDSCOPE_VECTOR_CLONES
void layer_norm_backward_input(const float* dy, const float* x, const float* gamma, const float* mean,
                               const float* rstd, float* dx, int rows, int cols) {
    const std::size_t n = static_cast<std::size_t>(cols);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* gradient = dy + i * n;
        const float* in = x + i * n;
        float* out = dx + i * n;
        const float center = mean[i];
        const float inverse = rstd[i];
        const float mean_g =
            lane_sum(n, [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return gradient[j] * gamma[j]; }) /
            static_cast<float>(cols);
        const float mean_gx = lane_sum(n,
                                       [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA {
                                           return gradient[j] * gamma[j] * ((in[j] - center) * inverse);
                                       }) /
                              static_cast<float>(cols);
        for (std::size_t j = 0; j < n; ++j) {
            const float xhat = (in[j] - center) * inverse;
            out[j] = (gradient[j] * gamma[j] - mean_g - xhat * mean_gx) * inverse;
        }
    }
}

SHARDSCOPE_VECTOR_CLONES
void layer_norm_backward_parameters(const float* dy, const float* x, const float* mean, const float* rstd,
                                    float* dgamma, float* dbeta, int rows, int cols) {
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
                const float* gradient = dy + i * columns + first;
                const float* in = x + i * columns + first;
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
        for (std::size_t j = 0; j < width; ++j) {
            dgamma[first + j] = static_cast<float>(total_gamma[j]);
            dbeta[first + j] = static_cast<float>(total_beta[j]);
        }
    }
}

}  // namespace shardscope::trainer::kernels
