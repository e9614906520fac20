// The operands of the three products; see convolution.h and implicit_gemm.h.
#include <algorithm>
#include <vector>

#include "trainer/cuda/convolution.h"
#include "trainer/cuda/divisor.h"
#include "trainer/cuda/implicit_gemm.h"
#include "trainer/device/kernel_context.h"

namespace shardscope::trainer::cuda {
namespace {

using implicit::kPack;
using kernels::ConvolutionShape;
using kernels::ImageShape;
using kernels::Window;

// --- patches: the pixels under a place of the window -----------------------------------------------------

// A place of the window: its sample, and its first pixel, which may lie outside the image.
struct Place {
    int sample, top, left;
};
// An element of a window.
struct Tap {
    int row, column, channel;
};

struct Images {
    const float* x;
    int height, width, stride, padding;
    Divisor channels, size, places, across;  // places: of a sample; across: of a row

    Images(const float* data, const ConvolutionShape& shape)
        : x(data),
          height(shape.image.height),
          width(shape.image.width),
          stride(shape.window.stride),
          padding(shape.window.padding),
          channels(shape.image.channels),
          size(shape.window.size),
          places(shape.result().height * shape.result().width),
          across(shape.result().width) {}

    __device__ Place place(int pixel) const {
        const Quotient sample = divide(pixel, places), row = divide(sample.rest, across);
        return {sample.quotient, row.quotient * stride - padding, row.rest * stride - padding};
    }
    __device__ Tap tap(int element) const {
        const Quotient pixel = divide(element, channels), row = divide(pixel.quotient, size);
        return {row.quotient, row.rest, pixel.rest};
    }
    // Null outside the image.
    __device__ const float* find(const Place& place, const Tap& tap) const {
        const int row = place.top + tap.row, column = place.left + tap.column;
        if (row < 0 || row >= height || column < 0 || column >= width) return nullptr;
        const std::int64_t pixel = (std::int64_t{place.sample} * height + row) * width + column;
        return x + pixel * channels.divisor() + tap.channel;
    }
    __device__ void load(const Place& place, const Tap& tap, float (&values)[kPack]) const {
        if (const float* from = find(place, tap)) load_floats(from, values);
    }
    __device__ float at(const Place& place, const Tap& tap) const {
        const float* from = find(place, tap);
        return from ? *from : 0.0f;
    }
};

bool packs(const float* data, int elements) {
    return elements % kPack == 0 && is_aligned(data);
}

// Rows are places, the depth is the window's elements.
struct Patches {
    static constexpr bool kAlongDepth = true;
    using Fixed = Place;
    Images images;
    bool packed;

    __device__ Fixed fix(int row) const { return images.place(row); }
    __device__ void load(const Fixed& place, int depth, float (&values)[kPack]) const {
        images.load(place, images.tap(depth), values);
    }
    __device__ float at(int row, int depth) const { return images.at(images.place(row), images.tap(depth)); }
};
// The same transposed.
struct PatchesAcross {
    static constexpr bool kAlongDepth = false;
    using Fixed = Tap;
    Images images;
    bool packed;

    __device__ Fixed fix(int row) const { return images.tap(row); }
    __device__ void load(const Fixed& tap, int depth, float (&values)[kPack]) const {
        images.load(images.place(depth), tap, values);
    }
    __device__ float at(int row, int depth) const { return images.at(images.place(depth), images.tap(row)); }
};

// --- matrices in memory ----------------------------------------------------------------------------------

// kByRows: row-major [rows, depth], else [depth, rows].
template <bool kByRows>
struct Matrix {
    static constexpr bool kAlongDepth = kByRows;
    using Fixed = int;
    const float* data;
    int stride;
    bool packed;

    Matrix(const float* from, int elements) : data(from), stride(elements), packed(packs(from, elements)) {}
    __device__ const float* find(int row, int depth) const {
        return kByRows ? data + std::int64_t{row} * stride + depth
                       : data + std::int64_t{depth} * stride + row;
    }
    __device__ Fixed fix(int row) const { return row; }
    __device__ void load(const Fixed& row, int depth, float (&values)[kPack]) const {
        load_floats(find(row, depth), values);
    }
    __device__ float at(int row, int depth) const { return *find(row, depth); }
};

struct RowMajor {
    int columns;
    __device__ std::size_t offset(int row) const {
        return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns);
    }
};

// --- the gradient of the input ---------------------------------------------------------------------------

// Along one axis: the pixels first, first + stride, … have the taps tap, tap + stride, …; the k-th of these
// taps reaches the u-th of these pixels from the place `place` + u - k.
struct Axis {
    int first = 0, pixels = 0, tap = 0, taps = 0, place = 0;

    Axis(const Window& window, int side, int rest) : tap(rest) {
        first = ((rest - window.padding) % window.stride + window.stride) % window.stride;
        pixels = first < side ? (side - first + window.stride - 1) / window.stride : 0;
        taps = rest < window.size ? (window.size - rest + window.stride - 1) / window.stride : 0;
        place = (first + window.padding - rest) / window.stride;
    }
};

// The pixels of one class: rows of the product.
struct PixelClass {
    Axis down, across;
    int stride;
    Divisor pixels, row;  // of a sample, of its row

    PixelClass(const Window& window, const ImageShape& image, int rest_down, int rest_across)
        : down(window, image.height, rest_down),
          across(window, image.width, rest_across),
          stride(window.stride),
          pixels(std::max(1, down.pixels * across.pixels)),
          row(std::max(1, across.pixels)) {}
    int taps() const { return down.taps * across.taps; }

    struct Pixel {
        int sample, u, v;
    };
    __device__ Pixel pixel(int index) const {
        const Quotient sample = divide(index, pixels), line = divide(sample.rest, row);
        return {sample.quotient, line.quotient, line.rest};
    }
};

// Rows are pixels, the depth is (tap, channel of the result).
struct GradientsAbove {
    static constexpr bool kAlongDepth = true;
    using Fixed = Place;  // of tap 0
    const float* dy;
    PixelClass of;
    int places_down, places_across;
    Divisor out, taps_across;
    bool packed;

    __device__ Fixed fix(int row) const {
        const PixelClass::Pixel pixel = of.pixel(row);
        return {pixel.sample, pixel.u + of.down.place, pixel.v + of.across.place};
    }
    __device__ const float* find(const Fixed& place, int depth) const {
        const Quotient tap = divide(depth, out), line = divide(tap.quotient, taps_across);
        const int row = place.top - line.quotient, column = place.left - line.rest;
        if (row < 0 || row >= places_down || column < 0 || column >= places_across) return nullptr;
        const std::int64_t pixel = (std::int64_t{place.sample} * places_down + row) * places_across + column;
        return dy + pixel * out.divisor() + tap.rest;
    }
    __device__ void load(const Fixed& place, int depth, float (&values)[kPack]) const {
        if (const float* from = find(place, depth)) load_floats(from, values);
    }
    __device__ float at(int row, int depth) const {
        const float* from = find(fix(row), depth);
        return from ? *from : 0.0f;
    }
};

// Rows are channels of the image.
struct FiltersOfClass {
    static constexpr bool kAlongDepth = false;
    using Fixed = int;
    const float* w;
    int channels, size, stride, tap_down, tap_across;
    Divisor out, taps_across;
    bool packed;

    __device__ const float* find(int row, int depth) const {
        const Quotient tap = divide(depth, out), line = divide(tap.quotient, taps_across);
        const int in_window = (line.quotient * stride + tap_down) * size + line.rest * stride + tap_across;
        return w + (std::int64_t{tap.rest} * size * size + in_window) * channels + row;
    }
    __device__ Fixed fix(int row) const { return row; }
    __device__ void load(const Fixed& row, int depth, float (&values)[kPack]) const {
        load_floats(find(row, depth), values);
    }
    __device__ float at(int row, int depth) const { return *find(row, depth); }
};

struct PixelsOfClass {
    PixelClass of;
    int height, width, channels;

    __device__ std::size_t offset(int row) const {
        const PixelClass::Pixel pixel = of.pixel(row);
        const std::int64_t line = std::int64_t{pixel.sample} * height + of.down.first + pixel.u * of.stride;
        return static_cast<std::size_t>((line * width + of.across.first + pixel.v * of.stride) * channels);
    }
};

// --- splits ----------------------------------------------------------------------------------------------

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) add_splits(const float* parts, const float* bias, float* sums,
                                                       std::size_t elements, int columns, int splits) {
    const std::size_t at = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at >= elements) return;
    float sum = parts[at];
    for (int s = 1; s < splits; ++s) sum += parts[static_cast<std::size_t>(s) * elements + at];
    sums[at] = bias ? sum + bias[at % static_cast<std::size_t>(columns)] : sum;
}

// Calls multiply(c): c is the result, or, if the depth is split, memory for the parts, which are then added.
template <class Multiply>
void with_splits(const DeviceContext& device, int splits, const float* bias, float* result,
                 std::size_t elements, int columns, const Multiply& multiply) {
    if (splits == 1) return multiply(result, bias);
    float* parts = device.workspace.take_of<float>(static_cast<std::size_t>(splits) * elements);
    multiply(parts, static_cast<const float*>(nullptr));
    launch(&add_splits, blocks_for(elements, kThreads), kThreads, 0, device.stream, parts, bias, result,
           elements, columns, splits);
}

int count(std::size_t pixels) {
    return device::kernel_dim(static_cast<std::int64_t>(pixels));
}

std::int64_t tiles(int rows, int columns) {
    return std::int64_t{implicit::tiles_of(rows)} * implicit::tiles_of(columns);
}

}  // namespace

void convolution_forward(const DeviceContext& device, const float* x, const float* w, const float* bias,
                         float* y, const ConvolutionShape& shape) {
    const int places = count(shape.result().pixels()), out = shape.out, depth = shape.depth();
    const int splits = implicit::splits_for(tiles(places, out), depth);
    const std::size_t elements = shape.result().elements();
    with_splits(device, splits, bias, y, elements, out, [&](float* c, const float* added) {
        implicit::Product<Patches, Matrix<true>, RowMajor> product{
            {Images(x, shape), packs(x, shape.image.channels)}, {w, depth}, {out}};
        product.rows = places, product.columns = out, product.depth = depth;
        product.elements = elements, product.bias = added;
        implicit::multiply(product, c, splits, device.stream);
    });
}

void convolution_backward_weight(const DeviceContext& device, const float* dy, const float* x, float* dw,
                                 const ConvolutionShape& shape) {
    const int places = count(shape.result().pixels()), out = shape.out, depth = shape.depth();
    const int splits = implicit::splits_for(tiles(out, depth), places);
    const auto elements = static_cast<std::size_t>(out) * static_cast<std::size_t>(depth);
    with_splits(device, splits, nullptr, dw, elements, depth, [&](float* c, const float*) {
        implicit::Product<Matrix<false>, PatchesAcross, RowMajor> product{
            {dy, out}, {Images(x, shape), packs(x, shape.image.channels)}, {depth}};
        product.rows = out, product.columns = depth, product.depth = places;
        product.elements = elements;
        implicit::multiply(product, c, splits, device.stream);
    });
}

void convolution_backward_input(const DeviceContext& device, const float* dy, const float* w, float* dx,
                                const ConvolutionShape& shape) {
    const Window& window = shape.window;
    const ImageShape& image = shape.image;
    const ImageShape result = shape.result();
    const int channels = image.channels, out = shape.out;
    (void)count(image.pixels());
    std::vector<PixelClass> classes;
    std::int64_t all_tiles = 0;
    int longest = 0;
    for (int rest = 0; rest < window.stride * window.stride; ++rest) {
        classes.emplace_back(window, image, rest / window.stride, rest % window.stride);
        const PixelClass& of = classes.back();
        all_tiles += tiles(image.batch * of.down.pixels * of.across.pixels, channels);
        longest = std::max(longest, of.taps() * out);
    }
    const int splits = implicit::splits_for(all_tiles, longest);
    with_splits(device, splits, nullptr, dx, image.elements(), channels, [&](float* c, const float*) {
        for (const PixelClass& of : classes) {
            const Divisor taps_across(std::max(1, of.across.taps));
            implicit::Product<GradientsAbove, FiltersOfClass, PixelsOfClass> product{
                {dy, of, result.height, result.width, Divisor(out), taps_across, packs(dy, out)},
                {w, channels, window.size, window.stride, of.down.tap, of.across.tap, Divisor(out),
                 taps_across, packs(w, channels)},
                {of, image.height, image.width, channels}};
            product.rows = image.batch * of.down.pixels * of.across.pixels;
            product.columns = channels, product.depth = of.taps() * out;
            product.elements = image.elements();
            implicit::multiply(product, c, splits, device.stream);
        }
    });
}

}  // namespace shardscope::trainer::cuda
