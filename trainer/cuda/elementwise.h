// Element-wise sums, products and conversions on a CUDA device: trainer/kernels/elementwise.h, bit for bit.
// T is float, Bf16 or Fp16; n elements; outputs may be exactly one of the inputs. Bound by memory; units of T
// moved per element: add 3, accumulate 3, subtract 3, scale 2; a cast moves 6 bytes, accumulate of two types
// 10 into fp32 and 8 into a narrow type.
#pragma once

#include <cstddef>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

// y = a + b
template <class T>
void add(const DeviceContext& device, const T* a, const T* b, T* y, std::size_t n);

// y += x; X is float or T, or T is float.
template <class X, class T>
void accumulate(const DeviceContext& device, const X* x, T* y, std::size_t n);

// y -= x
template <class T>
void subtract(const DeviceContext& device, const T* x, T* y, std::size_t n);

// x *= factor
template <class T>
void scale(const DeviceContext& device, T* x, float factor, std::size_t n);

// x *= *factor, which is on the device
template <class T>
void scale_by(const DeviceContext& device, T* x, const float* factor, std::size_t n);

// y = x, rounded to the nearest; one of X and T is float.
template <class X, class T>
void cast(const DeviceContext& device, const X* x, T* y, std::size_t n);

}  // namespace shardscope::trainer::cuda
