// The window of a convolution or pooling, and the shapes of images that it moves over. Images are [batch,
// height, width, channels], row-major (NHWC; channels_last in PyTorch); the filters of a convolution are
// [out, window row, window column, in].
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer::kernels {

// A square window: its side, the step from one place to the next, and the border of zeros around the image.
struct Window {
    int size = 1, stride = 1, padding = 0;

    // The places along a side of `side` pixels; below 1 if the window does not fit.
    constexpr int places(int side) const { return (side + 2 * padding - size) / stride + 1; }
    // All three in one number, which is how an operation of a Plan keeps them.
    constexpr std::int64_t packed() const {
        return size | (std::int64_t{stride} << 16) | (std::int64_t{padding} << 32);
    }
    static constexpr Window unpacked(std::int64_t from) {
        return {static_cast<int>(from & 0xFFFF), static_cast<int>(from >> 16 & 0xFFFF),
                static_cast<int>(from >> 32 & 0xFFFF)};
    }
    bool operator==(const Window&) const = default;
};

struct ImageShape {
    int batch = 0, height = 0, width = 0, channels = 0;

    constexpr std::size_t pixels() const {
        return static_cast<std::size_t>(batch) * static_cast<std::size_t>(height) *
               static_cast<std::size_t>(width);
    }
    constexpr std::size_t elements() const { return pixels() * static_cast<std::size_t>(channels); }
    // The image of the window's places.
    constexpr ImageShape under(const Window& window, int channels_of) const {
        return {batch, window.places(height), window.places(width), channels_of};
    }
    bool operator==(const ImageShape&) const = default;
};

}  // namespace shardscope::trainer::kernels
