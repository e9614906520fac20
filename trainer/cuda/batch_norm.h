// Batch norm of fp32 matrices [rows, columns] on a CUDA device: trainer/kernels/batch_norm.h, but with sums
// in another fixed order, of slices of the rows in fp32, then of the slices in fp64. Bound by memory; floats
// moved per element: forward 4 (x is read for the mean, for the squares of the deviations from it, and to be
// normalized), evaluate 2, backward 5, statistics 2, synced forward 2, gradient sums 2, synced backward 3.
#pragma once

#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/kernels/batch_norm.h"

namespace shardscope::trainer::cuda {

void batch_norm_forward(const DeviceContext& device, const float* x, const float* gamma, const float* beta,
                        float* y, float* mean, float* rstd, const kernels::RunningStatistics& running,
                        int rows, int columns, float eps);
void batch_norm_evaluate(const DeviceContext& device, const float* x, const float* gamma, const float* beta,
                         const float* running_mean, const float* running_variance, float* y, int rows,
                         int columns, float eps);
// Any of the three results may be null.
void batch_norm_backward(const DeviceContext& device, const float* dy, const float* x, const float* gamma,
                         const float* mean, const float* rstd, float* dx, float* dgamma, float* dbeta,
                         int rows, int columns);

void batch_norm_statistics(const DeviceContext& device, const float* x, float* statistics, int rows,
                           int columns);
void batch_norm_synced_forward(const DeviceContext& device, const float* x, const float* statistics,
                               int ranks, const float* gamma, const float* beta, float* y, float* mean,
                               float* rstd, const kernels::RunningStatistics& running, int rows, int columns,
                               float eps);
// dgamma and dbeta may be null.
void batch_norm_gradient_sums(const DeviceContext& device, const float* dy, const float* x, const float* mean,
                              const float* rstd, float* sums, float* dgamma, float* dbeta, int rows,
                              int columns);
void batch_norm_synced_backward(const DeviceContext& device, const float* dy, const float* x,
                                const float* gamma, const float* mean, const float* rstd, const float* sums,
                                float* dx, int rows, int columns, std::int64_t all_rows);

}  // namespace shardscope::trainer::cuda
