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

namespace {

// Part `place` of `places` along an axis: its first pixel and the one after its last.
struct Part {
    Part(int place, int places, int pixels)
        : first(place * pixels / places), end(((place + 1) * pixels + places - 1) / places) {}
    int first, end;
};

// Calls visit(rows, columns) for each part of an image.
template <class Visit>
void for_parts(const ImageShape& image, int side, const Visit& visit) {
    for (int i = 0; i < side; ++i)
        for (int j = 0; j < side; ++j) visit(Part(i, side, image.height), Part(j, side, image.width));
}

}  // namespace

SHARDSCOPE_VECTOR_CLONES
void adaptive_average_forward(const float* x, float* y, const ImageShape& image, int side) {
    const auto channels = static_cast<std::size_t>(image.channels);
    const auto of_row = static_cast<std::size_t>(image.width) * channels;
    for (int sample = 0; sample < image.batch; ++sample, x += pixels_of(image) * channels) {
        for_parts(image, side, [&](const Part& down, const Part& across) SHARDSCOPE_INLINE_LAMBDA {
            const auto width = static_cast<std::size_t>(across.end - across.first);
            const std::size_t pixels = static_cast<std::size_t>(down.end - down.first) * width;
            const float* corner = x + static_cast<std::size_t>(down.first) * of_row +
                                  static_cast<std::size_t>(across.first) * channels;
            sum_columns(pixels, channels, y,
                        [=](std::size_t i, std::size_t first, std::size_t count, float* partial)
                            SHARDSCOPE_INLINE_LAMBDA {
                                const float* row = corner + i / width * of_row + i % width * channels + first;
                                for (std::size_t c = 0; c < count; ++c) partial[c] += row[c];
                            });
            const float share = 1.0F / static_cast<float>(pixels);
            for (std::size_t c = 0; c < channels; ++c) y[c] *= share;
            y += channels;
        });
    }
}

SHARDSCOPE_VECTOR_CLONES
void adaptive_average_backward(const float* dy, float* dx, const ImageShape& image, int side) {
    const auto channels = static_cast<std::size_t>(image.channels);
    std::fill_n(dx, image.elements(), 0.0F);
    for (int sample = 0; sample < image.batch; ++sample, dx += pixels_of(image) * channels) {
        for_parts(image, side, [&](const Part& down, const Part& across) SHARDSCOPE_INLINE_LAMBDA {
            const float share =
                1.0F / static_cast<float>((down.end - down.first) * (across.end - across.first));
            for (int row = down.first; row < down.end; ++row) {
                float* pixel = dx + static_cast<std::size_t>(row * image.width + across.first) * channels;
                for (int column = across.first; column < across.end; ++column, pixel += channels)
                    for (std::size_t c = 0; c < channels; ++c) pixel[c] += dy[c] * share;
            }
            dy += channels;
        });
    }
}

}  // namespace shardscope::trainer::kernels
