// See pool.h. Threads side by side have neighbouring channels.
#include <algorithm>
#include <bit>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/divisor.h"
#include "trainer/cuda/pool.h"
#include "trainer/device/kernel_context.h"

namespace shardscope::trainer::cuda {
namespace {

using kernels::ImageShape;
using kernels::Window;

constexpr int kThreads = 256;

// The pixels of images, in memory order.
struct Pixels {
    int count, width, channels;
    Divisor of_sample, of_row;

    explicit Pixels(const ImageShape& image)
        : count(device::kernel_dim(static_cast<std::int64_t>(image.pixels()))),
          width(image.width),
          channels(image.channels),
          of_sample(image.height * image.width),
          of_row(image.width) {}

    struct Pixel {
        int sample, row, column;
    };
    __device__ Pixel at(int index) const {
        const Quotient sample = divide(index, of_sample), row = divide(sample.rest, of_row);
        return {sample.quotient, row.quotient, row.rest};
    }
    // Its element of channel 0.
    __device__ std::int64_t element(int sample, int row, int column) const {
        return (std::int64_t{sample} * of_sample.divisor() + row * width + column) * channels;
    }
};

// Calls f(pixel) for each pixel, and what it returns for each of its channels: value(element, channel).
template <class F>
__global__ void __launch_bounds__(kThreads) each_channel(Pixels pixels, int lanes, F f) {
    const int thread = static_cast<int>(threadIdx.x);
    const int index = static_cast<int>(blockIdx.x) * (kThreads / lanes) + thread / lanes;
    if (index >= pixels.count) return;
    const auto value = f(pixels.at(index));
    for (int c = thread % lanes; c < pixels.channels; c += lanes)
        value(std::int64_t{index} * pixels.channels + c, c);
}

template <class F>
void for_each_channel(const DeviceContext& device, const Pixels& pixels, const F& f) {
    const int lanes = static_cast<int>(
        std::min<unsigned>(kThreads, std::bit_ceil(static_cast<unsigned>(std::max(1, pixels.channels)))));
    launch(&each_channel<F>, blocks_for(static_cast<std::size_t>(pixels.count), kThreads / lanes), kThreads,
           0, device.stream, pixels, lanes, f);
}

// --- max pooling -------------------------------------------------------------------------------------------

struct Largest {
    const float* x;
    float* y;
    std::int32_t* places;
    Pixels image;
    int height, size, stride, padding;

    struct OfPlace {
        const Largest& of;
        const float* plane;
        int top, bottom, left, right;

        __device__ void operator()(std::int64_t element, int c) const {
            std::int32_t best = top * of.image.width + left;
            const std::int64_t step = of.image.channels;
            float largest = plane[best * step + c];
            for (int row = top; row < bottom; ++row) {
                for (int column = left; column < right; ++column) {
                    const std::int32_t place = row * of.image.width + column;
                    const float value = plane[place * step + c];
                    if (!(value > largest) && value == value) continue;
                    largest = value;
                    best = place;
                }
            }
            of.y[element] = largest;
            of.places[element] = best;
        }
    };
    __device__ OfPlace operator()(const Pixels::Pixel& place) const {
        const int top = place.row * stride - padding, left = place.column * stride - padding;
        return {*this,        x + image.element(place.sample, 0, 0), max(top, 0), min(top + size, height),
                max(left, 0), min(left + size, image.width)};
    }
};

// A pixel's gradient is the sum of those of the places whose largest it was.
struct LargestGradient {
    const float* dy;
    const std::int32_t* places;
    float* dx;
    Pixels result;
    int width, down, size, stride, padding;

    struct OfPixel {
        const LargestGradient& of;
        int sample, first_row, end_row, first_column, end_column;
        std::int32_t own;

        __device__ void operator()(std::int64_t element, int c) const {
            float sum = 0.0f;
            for (int row = first_row; row < end_row; ++row) {
                for (int column = first_column; column < end_column; ++column) {
                    const std::int64_t at = of.result.element(sample, row, column) + c;
                    if (of.places[at] == own) sum += of.dy[at];
                }
            }
            of.dx[element] = sum;
        }
    };
    // The first place whose window reaches a pixel, and the one after the last.
    __device__ int first(int pixel) const {
        return (max(pixel + padding - size + 1, 0) + stride - 1) / stride;
    }
    __device__ int end(int pixel, int all) const { return min((pixel + padding) / stride + 1, all); }
    __device__ OfPixel operator()(const Pixels::Pixel& pixel) const {
        return {*this,
                pixel.sample,
                first(pixel.row),
                end(pixel.row, down),
                first(pixel.column),
                end(pixel.column, result.width),
                pixel.row * width + pixel.column};
    }
};

// --- means of parts ----------------------------------------------------------------------------------------

constexpr int kRows = kThreads / kWarpLanes;

__device__ inline int first_of(int place, int places, int pixels) {
    return place * pixels / places;
}
__device__ inline int end_of(int place, int places, int pixels) {
    return ((place + 1) * pixels + places - 1) / places;
}

// A block makes the means of 32 channels of a part: its warps take pixels in turn.
__global__ void __launch_bounds__(kThreads) average_kernel(const float* x, float* y, Pixels image, int height,
                                                           Pixels parts, int side, int channel_tiles) {
    __shared__ float sums[kRows][kWarpLanes];
    const int lane = static_cast<int>(threadIdx.x) % kWarpLanes,
              warp = static_cast<int>(threadIdx.x) / kWarpLanes;
    const int index = static_cast<int>(blockIdx.x) / channel_tiles;
    const int c = static_cast<int>(blockIdx.x) % channel_tiles * kWarpLanes + lane;
    const Pixels::Pixel part = parts.at(index);
    const int top = first_of(part.row, side, height), left = first_of(part.column, side, image.width);
    const int across = end_of(part.column, side, image.width) - left;
    const int pixels = (end_of(part.row, side, height) - top) * across;
    float sum = 0.0f;
    if (c < image.channels) {
        for (int i = warp; i < pixels; i += kRows)
            sum += x[image.element(part.sample, top + i / across, left + i % across) + c];
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || c >= image.channels) return;
#pragma unroll
    for (int w = 1; w < kRows; ++w) sum += sums[w][lane];
    y[std::int64_t{index} * image.channels + c] = sum * (1.0f / static_cast<float>(pixels));
}

struct AverageGradient {
    const float* dy;
    float* dx;
    Pixels parts;
    int height, width, side;

    struct OfPixel {
        const AverageGradient& of;
        int sample, first_row, end_row, first_column, end_column;

        __device__ void operator()(std::int64_t element, int c) const {
            float sum = 0.0f;
            for (int row = first_row; row < end_row; ++row) {
                const int rows = end_of(row, of.side, of.height) - first_of(row, of.side, of.height);
                for (int column = first_column; column < end_column; ++column) {
                    const int columns =
                        end_of(column, of.side, of.width) - first_of(column, of.side, of.width);
                    sum += of.dy[of.parts.element(sample, row, column) + c] *
                           (1.0f / static_cast<float>(rows * columns));
                }
            }
            of.dx[element] = sum;
        }
    };
    // The parts that have pixel p are those i with floor(i n / side) <= p < ceil((i + 1) n / side).
    __device__ OfPixel operator()(const Pixels::Pixel& pixel) const {
        return {*this,
                pixel.sample,
                first_of(pixel.row, height, side),
                end_of(pixel.row, height, side),
                first_of(pixel.column, width, side),
                end_of(pixel.column, width, side)};
    }
};

}  // namespace

void max_pool_forward(const DeviceContext& device, const float* x, float* y, std::int32_t* places,
                      const ImageShape& image, const Window& window) {
    for_each_channel(
        device, Pixels(image.under(window, image.channels)),
        Largest{x, y, places, Pixels(image), image.height, window.size, window.stride, window.padding});
}

void max_pool_backward(const DeviceContext& device, const float* dy, const std::int32_t* places, float* dx,
                       const ImageShape& image, const Window& window) {
    const ImageShape result = image.under(window, image.channels);
    for_each_channel(device, Pixels(image),
                     LargestGradient{dy, places, dx, Pixels(result), image.width, result.height, window.size,
                                     window.stride, window.padding});
}

void adaptive_average_forward(const DeviceContext& device, const float* x, float* y, const ImageShape& image,
                              int side) {
    const Pixels parts({image.batch, side, side, image.channels});
    const int tiles = (image.channels + kWarpLanes - 1) / kWarpLanes;
    launch(&average_kernel, static_cast<unsigned>(parts.count) * static_cast<unsigned>(tiles), kThreads, 0,
           device.stream, x, y, Pixels(image), image.height, parts, side, tiles);
}

void adaptive_average_backward(const DeviceContext& device, const float* dy, float* dx,
                               const ImageShape& image, int side) {
    for_each_channel(device, Pixels(image),
                     AverageGradient{dy, dx, Pixels({image.batch, side, side, image.channels}), image.height,
                                     image.width, side});
}

}  // namespace shardscope::trainer::cuda
