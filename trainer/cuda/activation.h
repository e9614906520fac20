// ReLU, GELU (tanh form) and gated SiLU on a CUDA device: trainer/kernels/activation.h. ReLU matches it bit
// for bit; the others use the device's fast exponential and quotient (a few 1e-7 of the result; CUDA C++
// Programming Guide, intrinsic functions), because exact ones would make them bound by arithmetic instead of
// memory. Units of T moved per element: relu and gelu forward 2, backward 3; silu_mul forward 3, backward 5.
#pragma once

#include <cstddef>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

template <class T>
void relu_forward(const DeviceContext& device, const T* x, T* y, std::size_t n);

template <class T>
void relu_backward(const DeviceContext& device, const T* dy, const T* y, T* dx, std::size_t n);

template <class T>
void gelu_forward(const DeviceContext& device, const T* x, T* y, std::size_t n);

// relu_forward and gelu_forward that need only a stream; y may be x.
template <class T>
void launch_relu(const T* x, T* y, std::size_t n, cudaStream_t stream);
template <class T>
void launch_gelu(const T* x, T* y, std::size_t n, cudaStream_t stream);

template <class T>
void gelu_backward(const DeviceContext& device, const T* dy, const T* x, T* dx, std::size_t n);

template <class T>
void silu_mul_forward(const DeviceContext& device, const T* gate, const T* up, T* y, std::size_t n);

// dgate may be dy or gate, dup may be dy or up.
template <class T>
void silu_mul_backward(const DeviceContext& device, const T* dy, const T* gate, const T* up, T* dgate, T* dup,
                       std::size_t n);

}  // namespace shardscope::trainer::cuda
