// Each pass over the images reads them once; sums over columns are those of column_sums.h. See batch_norm.h.
#include "trainer/kernels/batch_norm.h"

#include <algorithm>
#include <array>
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

// The mean of each column, and the sum of squares of the deviations from it. Each block of rows, which stays
// in the caches, has its own; they are joined as those of ranks (batch_norm_synced_forward).
SHARDSCOPE_INLINE void moments(const float* x, float* mean, float* squares, std::size_t rows,
                               std::size_t columns) {
    for (std::size_t first = 0; first < columns; first += kColumnTile) {
        const std::size_t width = std::min(kColumnTile, columns - first);
        double center[kColumnTile] = {}, total[kColumnTile] = {};
        for (std::size_t block = 0; block < rows; block += kRowBlock) {
            const std::size_t count = std::min(kRowBlock, rows - block);
            const float* corner = x + block * columns + first;
            const float share = 1.0F / static_cast<float>(count);
            float of_block[kColumnTile] = {}, deviations[kColumnTile] = {};
            for (std::size_t i = 0; i < count; ++i)
                for (std::size_t c = 0; c < width; ++c) of_block[c] += corner[i * columns + c];
            for (std::size_t c = 0; c < width; ++c) of_block[c] *= share;
            for (std::size_t i = 0; i < count; ++i) {
                for (std::size_t c = 0; c < width; ++c) {
                    const float d = corner[i * columns + c] - of_block[c];
                    deviations[c] += d * d;
                }
            }
            const double before = static_cast<double>(block), added = static_cast<double>(count);
            const double weight = added / (before + added);
            for (std::size_t c = 0; c < width; ++c) {
                const double distance = of_block[c] - center[c];
                center[c] += distance * weight;
                total[c] += deviations[c] + distance * distance * before * weight;
            }
        }
        put_rounded(mean + first, center, width);
        put_rounded(squares + first, total, width);
    }
}

// The rest of a forward: `rstd` holds the sums of squares of `rows` rows.
SHARDSCOPE_INLINE void normalize(const float* x, const float* gamma, const float* beta, float* y,
                                 const float* mean, float* rstd, const RunningStatistics& running,
                                 std::size_t rows, std::size_t columns, double all_rows, float eps) {
    const double share = 1.0 / all_rows, of_sample = 1.0 / std::max(1.0, all_rows - 1.0);
    float* factor = workspace_of<float>(Purpose::rows, 2 * columns);
    float* shift = factor + columns;
    for (std::size_t c = 0; c < columns; ++c) {
        const double squares = rstd[c];
        running.mean[c] += running.momentum * (mean[c] - running.mean[c]);
        running.variance[c] +=
            running.momentum * (static_cast<float>(squares * of_sample) - running.variance[c]);
        rstd[c] = static_cast<float>(1.0 / std::sqrt(squares * share + static_cast<double>(eps)));
        factor[c] = gamma[c] * rstd[c];
        shift[c] = beta[c] - mean[c] * factor[c];
    }
    scale_columns(x, factor, shift, y, rows, columns);
}

// The sums over the rows of dy and of dy xhat.
SHARDSCOPE_INLINE void gradient_sums(const float* dy, const float* x, const float* mean, const float* rstd,
                                     float* sum, float* product, std::size_t rows, std::size_t columns) {
    sum_columns(rows, columns, std::array{sum, product},
                [=](std::size_t i, std::size_t first, std::size_t count, float(&partial)[2][kColumnTile])
                    SHARDSCOPE_INLINE_LAMBDA {
                        const float* row = dy + i * columns + first;
                        const float* in = x + i * columns + first;
                        for (std::size_t c = 0; c < count; ++c) {
                            partial[0][c] += row[c];
                            partial[1][c] += row[c] * ((in[c] - mean[first + c]) * rstd[first + c]);
                        }
                    });
}

// With xhat = (x - mean) rstd:  dx = gamma rstd (dy - mean(dy) - xhat mean(dy xhat)), means over all rows.
SHARDSCOPE_INLINE void input_gradient(const float* dy, const float* x, const float* gamma, const float* mean,
                                      const float* rstd, const float* sum, const float* product, float* dx,
                                      std::size_t rows, std::size_t columns, float share) {
    // dx = dy factor + x slope + shift
    float* factor = workspace_of<float>(Purpose::product, 3 * columns);
    float *slope = factor + columns, *shift = slope + columns;
    for (std::size_t c = 0; c < columns; ++c) {
        factor[c] = gamma[c] * rstd[c];
        slope[c] = -factor[c] * rstd[c] * product[c] * share;
        shift[c] = -factor[c] * sum[c] * share - slope[c] * mean[c];
    }
    for (std::size_t i = 0; i < rows; ++i, dy += columns, x += columns, dx += columns)
        for (std::size_t c = 0; c < columns; ++c) dx[c] = dy[c] * factor[c] + x[c] * slope[c] + shift[c];
}

}  // namespace

SHARDSCOPE_VECTOR_CLONES
void batch_norm_forward(const float* x, const float* gamma, const float* beta, float* y, float* mean,
                        float* rstd, const RunningStatistics& running, int rows, int columns, float eps) {
    const auto n = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
    moments(x, mean, rstd, n, width);
    normalize(x, gamma, beta, y, mean, rstd, running, n, width, rows, eps);
}

SHARDSCOPE_VECTOR_CLONES
void batch_norm_statistics(const float* x, float* statistics, int rows, int columns) {
    const auto width = static_cast<std::size_t>(columns);
    moments(x, statistics, statistics + width, static_cast<std::size_t>(rows), width);
    statistics[2 * width] = static_cast<float>(rows);
}

// The squares of the ranks' rows from the mean of all are their own and, for each row, that of the distance
// between the two means (Chan, Golub, LeVeque: "Updating formulae ...", 1979).
SHARDSCOPE_VECTOR_CLONES
void batch_norm_synced_forward(const float* x, const float* statistics, int ranks, const float* gamma,
                               const float* beta, float* y, float* mean, float* rstd,
                               const RunningStatistics& running, int rows, int columns, float eps) {
    const auto n = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
    const std::size_t of_rank = 2 * width + 1;
    const auto parts = static_cast<std::size_t>(ranks);
    for (std::size_t c = 0; c < width; ++c) {
        double sum = 0, squares = 0;
        for (std::size_t r = 0; r < parts; ++r) sum += statistics[r * of_rank + c];
        const double of_all = sum / ranks;
        for (std::size_t r = 0; r < parts; ++r) {
            const double distance = statistics[r * of_rank + c] - of_all;
            squares += statistics[r * of_rank + width + c] + distance * distance * rows;
        }
        mean[c] = static_cast<float>(of_all);
        rstd[c] = static_cast<float>(squares);
    }
    normalize(x, gamma, beta, y, mean, rstd, running, n, width, static_cast<double>(rows) * ranks, eps);
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

SHARDSCOPE_VECTOR_CLONES
void batch_norm_backward(const float* dy, const float* x, const float* gamma, const float* mean,
                         const float* rstd, float* dx, float* dgamma, float* dbeta, int rows, int columns) {
    const auto n = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
    float* sum = workspace_of<float>(Purpose::rows, 2 * width);
    float* product = sum + width;
    gradient_sums(dy, x, mean, rstd, sum, product, n, width);
    if (dgamma) std::copy_n(product, width, dgamma);
    if (dbeta) std::copy_n(sum, width, dbeta);
    if (dx)
        input_gradient(dy, x, gamma, mean, rstd, sum, product, dx, n, width, 1.0F / static_cast<float>(rows));
}

SHARDSCOPE_VECTOR_CLONES
void batch_norm_gradient_sums(const float* dy, const float* x, const float* mean, const float* rstd,
                              float* sums, float* dgamma, float* dbeta, int rows, int columns) {
    const auto width = static_cast<std::size_t>(columns);
    gradient_sums(dy, x, mean, rstd, sums, sums + width, static_cast<std::size_t>(rows), width);
    if (dgamma) std::copy_n(sums + width, width, dgamma);
    if (dbeta) std::copy_n(sums, width, dbeta);
}

SHARDSCOPE_VECTOR_CLONES
void batch_norm_synced_backward(const float* dy, const float* x, const float* gamma, const float* mean,
                                const float* rstd, const float* sums, float* dx, int rows, int columns,
                                std::int64_t all_rows) {
    const auto width = static_cast<std::size_t>(columns);
    input_gradient(dy, x, gamma, mean, rstd, sums, sums + width, dx, static_cast<std::size_t>(rows), width,
                   1.0F / static_cast<float>(all_rows));
}

}  // namespace shardscope::trainer::kernels
