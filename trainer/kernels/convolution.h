// Conv2d, forward and backward, of fp32 images (window.h), by the fastest method of the machine: oneDNN if it
// is installed and has code for the processor and the shape, else matmuls of the BLAS. Thread safe; each call
// runs only in its caller's thread. The same inputs always give the same bits on one machine; the methods
// differ in the order of the sums.
#pragma once

#include <string>

#include "trainer/kernels/window.h"

namespace shardscope::trainer::kernels {

struct ConvolutionShape {
    ImageShape image;
    int out = 0;  // channels of the result
    Window window;

    constexpr ImageShape result() const { return image.under(window, out); }
    // Elements of one filter.
    constexpr int depth() const { return window.size * window.size * image.channels; }
};

// y[n, i, j, o] = bias[o] + sum over the window of x times filter o; the bias may be null.
void convolution_forward(const float* x, const float* w, const float* bias, float* y,
                         const ConvolutionShape& shape);
void convolution_backward_input(const float* dy, const float* w, float* dx, const ConvolutionShape& shape);
void convolution_backward_weight(const float* dy, const float* x, float* dw, const ConvolutionShape& shape);

// The same by matmuls, even where a faster method is available.
void convolution_forward_by_matmul(const float* x, const float* w, const float* bias, float* y,
                                   const ConvolutionShape& shape);
void convolution_backward_input_by_matmul(const float* dy, const float* w, float* dx,
                                          const ConvolutionShape& shape);
void convolution_backward_weight_by_matmul(const float* dy, const float* x, float* dw,
                                           const ConvolutionShape& shape);

// The method that is tried first here, such as "oneDNN 2.6.3" or "SkylakeX sgemm (…why…)".
const std::string& convolution_method();

}  // namespace shardscope::trainer::kernels
