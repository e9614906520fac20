// Pooling of fp32 images (window.h). Plain functions, thread safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/window.h"

namespace shardscope::trainer::kernels {

// The largest value under each place of the window, and its place in the image of its channel: row * width +
// column. As in PyTorch the first of several equal values, and a NaN if there is one; the border counts for
// nothing.
void max_pool_forward(const float* x, float* y, std::int32_t* places, const ImageShape& image,
                      const Window& window);
void max_pool_backward(const float* dy, const std::int32_t* places, float* dx, const ImageShape& image,
                       const Window& window);

// AdaptiveAvgPool2d: `side` x `side` means of each channel, of parts of the image that are as equal as
// possible and overlap where they cannot be; [batch, side, side, channels].
void adaptive_average_forward(const float* x, float* y, const ImageShape& image, int side);
void adaptive_average_backward(const float* dy, float* dx, const ImageShape& image, int side);

}  // namespace shardscope::trainer::kernels
