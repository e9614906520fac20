// The activations of trainer/kernels/activation.h on a CUDA device. Those with a sigmoid use the device's
// fast exponential and division (error: a few 1e-7 of the result; CUDA C++ Programming Guide, intrinsic
// functions), because exact ones would be bound by arithmetic instead of memory; the others match the CPU bit
// for bit.
// Units of T moved per element: forward 2, backward 3; silu_mul forward 3, backward 5.
#pragma once

#include <cstddef>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"
#include "trainer/kernels/activation_kinds.h"

namespace shardscope::trainer::cuda {

template <class T>
void activation_forward(kernels::ActivationKind kind, const T* x, T* y, std::size_t n, const Existing& rows,
                        cudaStream_t stream);

template <class T>
void activation_backward(kernels::ActivationKind kind, const T* dy, const T* kept, T* dx, std::size_t n,
                         const Existing& rows, cudaStream_t stream);

template <class T>
void silu_mul_forward(const DeviceContext& device, const T* gate, const T* up, T* y, std::size_t n,
                      const Existing& rows);

// dgate may be dy or gate, dup may be dy or up.
template <class T>
void silu_mul_backward(const DeviceContext& device, const T* dy, const T* gate, const T* up, T* dgate, T* dup,
                       std::size_t n, const Existing& rows);

}  // namespace shardscope::trainer::cuda
