// Conv2d without bias, forward and backward, of fp32 images (window.h). Plain functions, thread safe: each
// thread has a workspace of its own.
#pragma once

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

}  // namespace shardscope::trainer::kernels
