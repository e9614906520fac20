// Batch norm (Ioffe, Szegedy: arXiv 1502.03167) of fp32 matrices [rows, columns], whose columns are channels
// and whose rows are the pixels of all images. Plain functions, thread safe.
#pragma once

#include <cstdint>

namespace shardscope::trainer::kernels {

// Statistics that the evaluation uses: a share `momentum` of each batch's mean and variance (of n - 1) enters
// them.
struct RunningStatistics {
    float* mean = nullptr;
    float* variance = nullptr;
    float momentum = 0;
};

// y = (x - mean) rstd gamma + beta with the mean and 1 / deviation of each column, which the backward needs.
void batch_norm_forward(const float* x, const float* gamma, const float* beta, float* y, float* mean,
                        float* rstd, const RunningStatistics& running, int rows, int columns, float eps);
// The same with the running statistics.
void batch_norm_evaluate(const float* x, const float* gamma, const float* beta, const float* running_mean,
                         const float* running_variance, float* y, int rows, int columns, float eps);
// Any of the three results may be null.
void batch_norm_backward(const float* dy, const float* x, const float* gamma, const float* mean,
                         const float* rstd, float* dx, float* dgamma, float* dbeta, int rows, int columns);

// The same with the rows of several ranks, each with as many (SyncBatchNorm). A rank computes its own
// statistics, 2 columns + 1 numbers: the mean of each column, the sum of squares of the deviations from it,
// and the number of rows.
void batch_norm_statistics(const float* x, float* statistics, int rows, int columns);
// As batch_norm_forward, with those of all ranks, one after the other.
void batch_norm_synced_forward(const float* x, const float* statistics, int ranks, const float* gamma,
                               const float* beta, float* y, float* mean, float* rstd,
                               const RunningStatistics& running, int rows, int columns, float eps);
// The rank's sums over its rows that dx needs, 2 columns numbers: of dy and of dy (x - mean) rstd, which are
// also its gradients of beta and gamma. Either may be null.
void batch_norm_gradient_sums(const float* dy, const float* x, const float* mean, const float* rstd,
                              float* sums, float* dgamma, float* dbeta, int rows, int columns);
// dx from the sums of all ranks added up, which together have `all_rows`.
void batch_norm_synced_backward(const float* dy, const float* x, const float* gamma, const float* mean,
                                const float* rstd, const float* sums, float* dx, int rows, int columns,
                                std::int64_t all_rows);

}  // namespace shardscope::trainer::kernels
