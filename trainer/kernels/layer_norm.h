// Layer norm over the last dimension, forward and backward. fp32, row-major; x, y, dy, dx [rows,cols]; gamma,
// beta and their gradients [cols]; mean and rstd (1/sqrt(variance + eps)) [rows], kept for the backward.
// Thread safe.
#pragma once

namespace shardscope::trainer::kernels {

// y = (x - mean) * rstd * gamma + beta; y may be x.
void layer_norm_forward(const float* x, const float* gamma, const float* beta, float* y, float* mean,
                        float* rstd, int rows, int cols, float eps);

// dx may be dy.
void layer_norm_backward_input(const float* dy, const float* x, const float* gamma, const float* mean,
                               const float* rstd, float* dx, int rows, int cols);

// dgamma[j] = sum of dy[i,j] * (x[i,j] - mean[i]) * rstd[i], dbeta[j] = sum of dy[i,j], over the rows;
// overwritten.
void layer_norm_backward_parameters(const float* dy, const float* x, const float* mean, const float* rstd,
                                    float* dgamma, float* dbeta, int rows, int cols);

}  // namespace shardscope::trainer::kernels
