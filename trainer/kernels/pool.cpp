// The channels of a pixel are neighbours, so that the inner loops go over channels; see pool.h.
#include "trainer/kernels/pool.h"

#include <algorithm>
#include <cstddef>

#include "trainer/kernels/column_sums.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

namespace {

std::size_t pixels_of(const ImageShape& image) {
    return static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width);
}

}  // namespace

SHARDSCOPE_VECTOR_CLONES
void max_pool_forward(const float* x, float* y, std::int32_t* places, const ImageShape& image,
                      const Window& window) {
    const ImageShape result = image.under(window, image.channels);
    const auto channels = static_cast<std::size_t>(image.channels);
    for (int sample = 0; sample < image.batch; ++sample) {
        const float* plane = x + static_cast<std::size_t>(sample) * pixels_of(image) * channels;
        for (int i = 0; i < result.height; ++i) {
            for (int j = 0; j < result.width; ++j, y += channels, places += channels) {
                const int top = i * window.stride - window.padding, left = j * window.stride - window.padding;
                bool first = true;
                for (int row = std::max(top, 0); row < std::min(top + window.size, image.height); ++row) {
                    for (int column = std::max(left, 0); column < std::min(left + window.size, image.width);
                         ++column) {
                        const std::int32_t place = row * image.width + column;
                        const float* values = plane + static_cast<std::size_t>(place) * channels;
                        if (first) {
                            std::copy_n(values, channels, y);
                            std::fill_n(places, channels, place);
                            first = false;
                            continue;
                        }
                        for (std::size_t c = 0; c < channels; ++c) {
                            const float value = values[c];
                            const bool larger = value > y[c] || value != value;
                            y[c] = larger ? value : y[c];
                            places[c] = larger ? place : places[c];
                        }
                    }
                }
            }
        }
    }
}

void max_pool_backward(const float* dy, const std::int32_t* places, float* dx, const ImageShape& image,
                       const Window& window) {
    const auto channels = static_cast<std::size_t>(image.channels);
    const std::size_t of_sample = pixels_of(image.under(window, 1)) * channels;
    std::fill_n(dx, image.elements(), 0.0F);
    for (int sample = 0; sample < image.batch; ++sample) {
        float* plane = dx + static_cast<std::size_t>(sample) * pixels_of(image) * channels;
        for (std::size_t i = 0; i < of_sample; i += channels, dy += channels, places += channels) {
            for (std::size_t c = 0; c < channels; ++c)
                plane[static_cast<std::size_t>(places[c]) * channels + c] += dy[c];
        }
    }
}

SHARDSCOPE_VECTOR_CLONES
void global_average_forward(const float* x, float* y, const ImageShape& image) {
    const auto channels = static_cast<std::size_t>(image.channels);
    const std::size_t pixels = pixels_of(image);
    const float share = 1.0F / static_cast<float>(pixels);
    for (int sample = 0; sample < image.batch; ++sample, x += pixels * channels, y += channels) {
        sum_columns(pixels, channels, y,
                    [=](std::size_t i, std::size_t first, std::size_t width, float* partial)
                        SHARDSCOPE_INLINE_LAMBDA {
                            const float* row = x + i * channels + first;
                            for (std::size_t c = 0; c < width; ++c) partial[c] += row[c];
                        });
        for (std::size_t c = 0; c < channels; ++c) y[c] *= share;
    }
}

SHARDSCOPE_VECTOR_CLONES
void global_average_backward(const float* dy, float* dx, const ImageShape& image) {
    const auto channels = static_cast<std::size_t>(image.channels);
    const std::size_t pixels = pixels_of(image);
    const float share = 1.0F / static_cast<float>(pixels);
    for (int sample = 0; sample < image.batch; ++sample, dy += channels) {
        for (std::size_t i = 0; i < pixels; ++i, dx += channels)
            for (std::size_t c = 0; c < channels; ++c) dx[c] = dy[c] * share;
    }
}

}  // namespace shardscope::trainer::kernels
