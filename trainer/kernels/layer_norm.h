// Layer norm over the last dimension, forward and backward. T is float, Bf16 or Fp16 (arithmetic in fp32),
// row-major; x, y, dy, dx [rows,cols]; gamma, beta and their gradients [cols]; mean and rstd (1/sqrt(variance
// + eps)), fp32 [rows], kept for the backward. Thread safe. Ba, Kiros, Hinton: "Layer normalization", 2016.
#pragma once

namespace shardscope::trainer::kernels {

// y = (x - mean) * rstd * gamma + beta; y may be x.
template <class T>
void layer_norm_forward(const T* x, const T* gamma, const T* beta, T* y, float* mean, float* rstd, int rows,
                        int cols, float eps);

// dx may be dy.
template <class T>
void layer_norm_backward_input(const T* dy, const T* x, const T* gamma, const float* mean, const float* rstd,
                               T* dx, int rows, int cols);

// dgamma[j] = sum of dy[i,j] * (x[i,j] - mean[i]) * rstd[i], dbeta[j] = sum of dy[i,j], over the rows;
// overwritten.
template <class T>
void layer_norm_backward_parameters(const T* dy, const T* x, const float* mean, const float* rstd, T* dgamma,
                                    T* dbeta, int rows, int cols);

}  // namespace shardscope::trainer::kernels
