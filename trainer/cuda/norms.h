// Layer norm and root-mean-square norm on a CUDA device: trainer/kernels/layer_norm.h and rms_norm.h, but
// with sums in another fixed order. T is float, Bf16 or Fp16; x, y, dy, dx [rows,cols]; gamma, beta and their
// gradients [cols]; mean, rstd fp32 [rows]. Bound by memory; units of T moved per element: forward 2,
// backward of the input 3, of the parameters 2 (rows of up to 2048 packs of 16 bytes are read once).
#pragma once

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

// y may be x.
template <class T>
void layer_norm_forward(const DeviceContext& device, const T* x, const T* gamma, const T* beta, T* y,
                        float* mean, float* rstd, int rows, int cols, float eps);

// dx may be dy.
template <class T>
void layer_norm_backward_input(const DeviceContext& device, const T* dy, const T* x, const T* gamma,
                               const float* mean, const float* rstd, T* dx, int rows, int cols);

template <class T>
void layer_norm_backward_parameters(const DeviceContext& device, const T* dy, const T* x, const float* mean,
                                    const float* rstd, T* dgamma, T* dbeta, int rows, int cols);

// y may be x.
template <class T>
void rms_norm_forward(const DeviceContext& device, const T* x, const T* gamma, T* y, float* rstd, int rows,
                      int cols, float eps);

// dx may be dy.
template <class T>
void rms_norm_backward_input(const DeviceContext& device, const T* dy, const T* x, const T* gamma,
                             const float* rstd, T* dx, int rows, int cols);

template <class T>
void rms_norm_backward_parameters(const DeviceContext& device, const T* dy, const T* x, const float* rstd,
                                  T* dgamma, int rows, int cols);

}  // namespace shardscope::trainer::cuda
