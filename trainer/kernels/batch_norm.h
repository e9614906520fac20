// Batch norm (Ioffe, Szegedy: arXiv 1502.03167) of fp32 matrices [rows, columns], whose columns are channels
// and whose rows are the pixels of all images. Plain functions, thread safe.
#pragma once

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

}  // namespace shardscope::trainer::kernels
