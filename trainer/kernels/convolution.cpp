// Convolutions as matmuls: the pixels under each place of the window become a row of a matrix (im2col), a few
// lines of places at a time so that the matrix stays in the cache. A window of one pixel needs no such
// matrix.
#include "trainer/kernels/convolution.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "trainer/kernels/blas.h"
#include "trainer/kernels/onednn.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {

namespace {

constexpr std::size_t kPatchFloats = std::size_t{1} << 18;  // of the matrix of pixels: 1 MiB

// The parts of a row of a window that lie left of the image, in it and right of it, in pixels.
struct Overlap {
    int before = 0, inside = 0, after = 0;
};
Overlap overlap_of(const Window& window, int place, int side) {
    const int first = place * window.stride - window.padding;
    const int before = std::clamp(-first, 0, window.size);
    const int after = std::clamp(first + window.size - side, 0, window.size - before);
    return {before, window.size - before - after, after};
}

// Calls visit(offset in the image, offset in the row, floats) for the pieces of a window's row that lie in
// the image, and outside(offset in the row, floats) for those that do not, for all places of the lines
// [first, end) of the result.
template <class Visit, class Outside>
void for_pieces(const ConvolutionShape& shape, int first, int end, const Visit& visit,
                const Outside& outside) {
    const ImageShape& image = shape.image;
    const Window& window = shape.window;
    const ImageShape result = shape.result();
    const auto channels = static_cast<std::size_t>(image.channels);
    const std::size_t row = static_cast<std::size_t>(window.size) * channels;
    std::size_t to = 0;
    for (int line = first; line < end; ++line) {
        const int sample = line / result.height, i = line % result.height;
        for (int j = 0; j < result.width; ++j) {
            const Overlap across = overlap_of(window, j, image.width);
            const std::size_t left = static_cast<std::size_t>(across.before) * channels;
            const std::size_t inside = static_cast<std::size_t>(across.inside) * channels;
            for (int k = 0; k < window.size; ++k, to += row) {
                const int y = i * window.stride - window.padding + k;
                if (y < 0 || y >= image.height || across.inside == 0) {
                    outside(to, row);
                    continue;
                }
                const int x = j * window.stride - window.padding + across.before;
                const std::size_t pixel =
                    (static_cast<std::size_t>(sample) * static_cast<std::size_t>(image.height) +
                     static_cast<std::size_t>(y)) *
                        static_cast<std::size_t>(image.width) +
                    static_cast<std::size_t>(x);
                outside(to, left);
                visit(pixel * channels, to + left, inside);
                outside(to + left + inside, row - left - inside);
            }
        }
    }
}

void gather_patches(const float* x, float* patches, const ConvolutionShape& shape, int first, int end) {
    for_pieces(
        shape, first, end,
        [=](std::size_t from, std::size_t to, std::size_t n) {
            std::memcpy(patches + to, x + from, n * sizeof(float));
        },
        [=](std::size_t to, std::size_t n) { std::fill_n(patches + to, n, 0.0F); });
}

void add_patches(const float* patches, float* dx, const ConvolutionShape& shape, int first, int end) {
    for_pieces(
        shape, first, end,
        [=](std::size_t to, std::size_t from, std::size_t n) {
            for (std::size_t i = 0; i < n; ++i) dx[to + i] += patches[from + i];
        },
        [](std::size_t, std::size_t) {});
}

bool is_plain_matmul(const Window& window) {
    return window == Window{};
}

// Calls step(first line, end line, rows, first row of the result) for as many lines as the matrix has room
// for.
template <class Step>
void in_tiles(const ConvolutionShape& shape, const Step& step) {
    const ImageShape result = shape.result();
    const int lines = result.batch * result.height;
    const std::size_t line_floats =
        static_cast<std::size_t>(result.width) * static_cast<std::size_t>(shape.depth());
    const int tile = static_cast<int>(std::max<std::size_t>(1, kPatchFloats / line_floats));
    for (int first = 0; first < lines; first += tile) {
        const int end = std::min(lines, first + tile);
        step(first, end, (end - first) * result.width,
             static_cast<std::size_t>(first) * static_cast<std::size_t>(result.width));
    }
}

float* patches_of(const ConvolutionShape& shape, int rows) {
    return workspace_of<float>(Purpose::operand_a,
                               static_cast<std::size_t>(rows) * static_cast<std::size_t>(shape.depth()));
}

}  // namespace

void convolution_forward_by_matmul(const float* x, const float* w, const float* bias, float* y,
                                   const ConvolutionShape& shape) {
    const Blas& blas = Blas::get();
    const int depth = shape.depth(), out = shape.out;
    const auto width = static_cast<std::size_t>(out);
    const float kept = bias ? 1.0F : 0.0F;  // the matmul is added to the bias
    if (bias) {
        for (std::size_t at = 0; at < shape.result().elements(); at += width)
            std::copy_n(bias, width, y + at);
    }
    if (is_plain_matmul(shape.window)) {
        return blas.sgemm(false, true, static_cast<int>(shape.image.pixels()), out, depth, 1.0F, x, depth, w,
                          depth, kept, y, out);
    }
    in_tiles(shape, [&](int first, int end, int rows, std::size_t row) {
        float* patches = patches_of(shape, rows);
        gather_patches(x, patches, shape, first, end);
        blas.sgemm(false, true, rows, out, depth, 1.0F, patches, depth, w, depth, kept, y + row * width, out);
    });
}

void convolution_backward_input_by_matmul(const float* dy, const float* w, float* dx,
                                          const ConvolutionShape& shape) {
    const Blas& blas = Blas::get();
    const int depth = shape.depth(), out = shape.out;
    if (is_plain_matmul(shape.window)) {
        return blas.sgemm(false, false, static_cast<int>(shape.image.pixels()), depth, out, 1.0F, dy, out, w,
                          depth, 0.0F, dx, depth);
    }
    std::fill_n(dx, shape.image.elements(), 0.0F);
    in_tiles(shape, [&](int first, int end, int rows, std::size_t row) {
        float* patches = patches_of(shape, rows);
        blas.sgemm(false, false, rows, depth, out, 1.0F, dy + row * static_cast<std::size_t>(out), out, w,
                   depth, 0.0F, patches, depth);
        add_patches(patches, dx, shape, first, end);
    });
}

void convolution_backward_weight_by_matmul(const float* dy, const float* x, float* dw,
                                           const ConvolutionShape& shape) {
    const Blas& blas = Blas::get();
    const int depth = shape.depth(), out = shape.out;
    if (is_plain_matmul(shape.window)) {
        return blas.sgemm(true, false, out, depth, static_cast<int>(shape.image.pixels()), 1.0F, dy, out, x,
                          depth, 0.0F, dw, depth);
    }
    in_tiles(shape, [&](int first, int end, int rows, std::size_t row) {
        float* patches = patches_of(shape, rows);
        gather_patches(x, patches, shape, first, end);
        blas.sgemm(true, false, out, depth, rows, 1.0F, dy + row * static_cast<std::size_t>(out), out,
                   patches, depth, first == 0 ? 0.0F : 1.0F, dw, depth);
    });
}

void convolution_forward(const float* x, const float* w, const float* bias, float* y,
                         const ConvolutionShape& shape) {
    if (OneDnn::get().convolve(x, w, bias, y, shape)) return;
    convolution_forward_by_matmul(x, w, bias, y, shape);
}

void convolution_backward_input(const float* dy, const float* w, float* dx, const ConvolutionShape& shape) {
    if (OneDnn::get().convolve_backward_input(dy, w, dx, shape)) return;
    convolution_backward_input_by_matmul(dy, w, dx, shape);
}

// For windows of one pixel and for strides above 1, oneDNN takes longer than a matmul (measured on an AMD Zen
// 5, ResNet-50's shapes: 1.1 to 1.5 times; for 3 x 3 pixels with a stride of 1 it takes 0.9 times).
void convolution_backward_weight(const float* dy, const float* x, float* dw, const ConvolutionShape& shape) {
    const bool is_faster = shape.window.size > 1 && shape.window.stride == 1;
    if (is_faster && OneDnn::get().convolve_backward_weight(dy, x, dw, shape)) return;
    convolution_backward_weight_by_matmul(dy, x, dw, shape);
}

const std::string& convolution_method() {
    static const std::string method =
        OneDnn::get().usable()
            ? OneDnn::get().description()
            : fmt::format("{} sgemm ({})", Blas::get().core(), OneDnn::get().description());
    return method;
}

}  // namespace shardscope::trainer::kernels
