// Root-mean-square norm over the last dimension, as in Llama, forward and backward. T is float, Bf16 or Fp16
// (arithmetic in fp32), row-major; x, y, dy, dx [rows,cols]; gamma and its gradient [cols]; rstd fp32 [rows],
// kept for the backward. Thread safe. Zhang, Sennrich: "Root mean square layer normalization", 2019.
#pragma once

namespace shardscope::trainer::kernels {

// rstd = 1 / sqrt(mean of x^2 + eps), y = x * rstd * gamma; y may be x.
template <class T>
void rms_norm_forward(const T* x, const T* gamma, T* y, float* rstd, int rows, int cols, float eps);

// dx may be dy.
template <class T>
void rms_norm_backward_input(const T* dy, const T* x, const T* gamma, const float* rstd, T* dx, int rows,
                             int cols);

// dgamma[j] = sum of dy[i,j] * x[i,j] * rstd[i] over the rows; overwritten.
template <class T>
void rms_norm_backward_parameters(const T* dy, const T* x, const float* rstd, T* dgamma, int rows, int cols);

}  // namespace shardscope::trainer::kernels
