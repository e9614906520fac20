// Conv2d of fp32 images on a CUDA device: trainer/kernels/convolution.h, but with sums in another fixed
// order. Implicit GEMM: the matrix of pixels under each place of the window is never stored, its elements are
// found while they are loaded (implicit_gemm.h). With h x w places of the window, s its side:
//   forward           y [batch h w, out]        = patches [.., s s in] filters [out, s s in]^T + bias
//   backward_weight   dw [out, s s in]          = dy [batch h w, out]^T patches
//   backward_input    dx [pixels of x, in]      = dy under each pixel [.., taps out] filters [taps out, in]
// In the last, the taps of a pixel are those whose distance to it is a multiple of the stride: one product
// for each of the stride x stride classes of pixels that have the same taps. The dispatch gives a
// window of one pixel with a stride of 1 to Gemm, as a Linear.
#pragma once

#include "trainer/cuda/device.h"
#include "trainer/kernels/convolution.h"

namespace shardscope::trainer::cuda {

// The bias may be null.
void convolution_forward(const DeviceContext& device, const float* x, const float* w, const float* bias,
                         float* y, const kernels::ConvolutionShape& shape);
void convolution_backward_input(const DeviceContext& device, const float* dy, const float* w, float* dx,
                                const kernels::ConvolutionShape& shape);
void convolution_backward_weight(const DeviceContext& device, const float* dy, const float* x, float* dw,
                                 const kernels::ConvolutionShape& shape);

}  // namespace shardscope::trainer::cuda
