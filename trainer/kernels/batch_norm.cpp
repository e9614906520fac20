// Sums over columns are those of column_sums.h; see batch_norm.h.
#include "trainer/kernels/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "trainer/kernels/column_sums.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {

namespace {

// y = x factor + shift, column by column.
SHARDSCOPE_INLINE void scale_columns(const float* x, const float* factor, const float* shift, float* y,
                                     std::size_t rows, std::size_t columns) {
    for (std::size_t i = 0; i < rows; ++i, x += columns, y += columns)
        for (std::size_t c = 0; c < columns; ++c) y[c] = x[c] * factor[c] + shift[c];
}

}  // namespace

SHARDSCOPE_VECTOR_CLONES
void batch_norm_forward(const float* x, const float* gamma, const float* beta, float* y, float* mean,
                        float* rstd, const RunningStatistics& running, int rows, int columns, float eps) {
    const auto n = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
    const double share = 1.0 / static_cast<double>(rows);
    sum_columns(n, width, mean,
                [=](std::size_t i, std::size_t first, std::size_t count, float* partial)
                    SHARDSCOPE_INLINE_LAMBDA {
                        const float* row = x + i * width + first;
                        for (std::size_t c = 0; c < count; ++c) partial[c] += row[c];
                    });
    for (std::size_t c = 0; c < width; ++c) mean[c] = static_cast<float>(mean[c] * share);
    const float* center = mean;
    sum_columns(n, width, rstd,
                [=](std::size_t i, std::size_t first, std::size_t count, float* partial)
                    SHARDSCOPE_INLINE_LAMBDA {
                        const float* row = x + i * width + first;
                        for (std::size_t c = 0; c < count; ++c) {
                            const float d = row[c] - center[first + c];
                            partial[c] += d * d;
                        }
                    });
    const double of_sample = 1.0 / std::max(1.0, static_cast<double>(rows) - 1.0);
    float* factor = workspace_of<float>(Purpose::rows, 2 * width);
    float* shift = factor + width;
    for (std::size_t c = 0; c < width; ++c) {
        const double squares = rstd[c];
        running.mean[c] += running.momentum * (mean[c] - running.mean[c]);
        running.variance[c] +=
            running.momentum * (static_cast<float>(squares * of_sample) - running.variance[c]);
        rstd[c] = static_cast<float>(1.0 / std::sqrt(squares * share + static_cast<double>(eps)));
        factor[c] = gamma[c] * rstd[c];
        shift[c] = beta[c] - mean[c] * factor[c];
    }
    scale_columns(x, factor, shift, y, n, width);
}

SHARDSCOPE_VECTOR_CLONES
void batch_norm_evaluate(const float* x, const float* gamma, const float* beta, const float* running_mean,
                         const float* running_variance, float* y, int rows, int columns, float eps) {
    const auto width = static_cast<std::size_t>(columns);
    float* factor = workspace_of<float>(Purpose::rows, 2 * width);
    float* shift = factor + width;
    for (std::size_t c = 0; c < width; ++c) {
        factor[c] = gamma[c] / std::sqrt(running_variance[c] + eps);
        shift[c] = beta[c] - running_mean[c] * factor[c];
    }
    scale_columns(x, factor, shift, y, static_cast<std::size_t>(rows), width);
}

// With xhat = (x - mean) rstd:  dx = gamma rstd (dy - mean(dy) - xhat mean(dy xhat)), means over the rows.
SHARDSCOPE_VECTOR_CLONES
void batch_norm_backward(const float* dy, const float* x, const float* gamma, const float* mean,
                         const float* rstd, float* dx, float* dgamma, float* dbeta, int rows, int columns) {
    const auto n = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
    float* buffers = workspace_of<float>(Purpose::rows, 5 * width);
    float *sum = buffers, *product = buffers + width;
    sum_columns(n, width, sum,
                [=](std::size_t i, std::size_t first, std::size_t count, float* partial)
                    SHARDSCOPE_INLINE_LAMBDA {
                        const float* row = dy + i * width + first;
                        for (std::size_t c = 0; c < count; ++c) partial[c] += row[c];
                    });
    sum_columns(n, width, product,
                [=](std::size_t i, std::size_t first, std::size_t count, float* partial)
                    SHARDSCOPE_INLINE_LAMBDA {
                        const float* row = dy + i * width + first;
                        const float* in = x + i * width + first;
                        for (std::size_t c = 0; c < count; ++c)
                            partial[c] += row[c] * ((in[c] - mean[first + c]) * rstd[first + c]);
                    });
    if (dgamma) std::copy_n(product, width, dgamma);
    if (dbeta) std::copy_n(sum, width, dbeta);
    if (!dx) return;
    // dx = dy factor + x slope + shift
    float *factor = buffers + 2 * width, *slope = buffers + 3 * width, *shift = buffers + 4 * width;
    const float share = 1.0F / static_cast<float>(rows);
    for (std::size_t c = 0; c < width; ++c) {
        factor[c] = gamma[c] * rstd[c];
        slope[c] = -factor[c] * rstd[c] * product[c] * share;
        shift[c] = -factor[c] * sum[c] * share - slope[c] * mean[c];
    }
    for (std::size_t i = 0; i < n; ++i, dy += width, x += width, dx += width)
        for (std::size_t c = 0; c < width; ++c) dx[c] = dy[c] * factor[c] + x[c] * slope[c] + shift[c];
}

}  // namespace shardscope::trainer::kernels
