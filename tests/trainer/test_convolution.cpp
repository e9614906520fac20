// Convolutions compared with the sum that defines them, their gradients with finite differences of it.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/convolution.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

std::size_t at(const ImageShape& image, int n, int y, int x, int c) {
    return ((static_cast<std::size_t>(n) * image.height + y) * image.width + x) * image.channels + c;
}

Vector plain_convolution(const Vector& x, const Vector& w, const ConvolutionShape& shape) {
    const ImageShape result = shape.result();
    const Window& window = shape.window;
    Vector y(result.elements());
    for (int n = 0; n < result.batch; ++n)
        for (int i = 0; i < result.height; ++i)
            for (int j = 0; j < result.width; ++j)
                for (int o = 0; o < shape.out; ++o)
                    for (int k = 0; k < shape.depth(); ++k) {
                        const int c = k % shape.image.channels, tap = k / shape.image.channels;
                        const int row = i * window.stride - window.padding + tap / window.size;
                        const int column = j * window.stride - window.padding + tap % window.size;
                        if (row < 0 || row >= shape.image.height || column < 0 || column >= shape.image.width)
                            continue;
                        y[at(result, n, i, j, o)] += x[at(shape.image, n, row, column, c)] *
                                                     w[static_cast<std::size_t>(o) * shape.depth() + k];
                    }
    return y;
}

class ConvolutionShapes : public ::testing::TestWithParam<ConvolutionShape> {
  protected:
    const ConvolutionShape& shape_ = GetParam();
    const std::size_t weights_ = static_cast<std::size_t>(shape_.out) * shape_.depth();
    const Floats x_ = normals(shape_.image.elements(), "x"), w_ = normals(weights_, "w");
    const Floats dy_ = normals(shape_.result().elements(), "dy");
};

TEST_P(ConvolutionShapes, AgreesWithTheSumThatDefinesIt) {
    Floats y(shape_.result().elements(), NAN);
    convolution_forward(x_.data(), w_.data(), nullptr, y.data(), shape_);
    EXPECT_LE(relative_error(y, plain_convolution(in_double(x_), in_double(w_), shape_)), kFloatTolerance);
}

TEST_P(ConvolutionShapes, AddsTheBias) {
    const Floats bias = normals(static_cast<std::size_t>(shape_.out), "bias");
    Floats y(shape_.result().elements(), NAN);
    convolution_forward(x_.data(), w_.data(), bias.data(), y.data(), shape_);
    Vector expected = plain_convolution(in_double(x_), in_double(w_), shape_);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % bias.size()];
    EXPECT_LE(relative_error(y, expected), kFloatTolerance);
}

TEST_P(ConvolutionShapes, GradientsAgreeWithFiniteDifferences) {
    Floats dx(x_.size(), NAN), dw(weights_, NAN);
    convolution_backward_input(dy_.data(), w_.data(), dx.data(), shape_);
    convolution_backward_weight(dy_.data(), x_.data(), dw.data(), shape_);
    const Vector x = in_double(x_), w = in_double(w_), dy = in_double(dy_);
    EXPECT_LE(
        relative_error(dx, finite_differences(
                               x, [&](const Vector& v) { return dot(dy, plain_convolution(v, w, shape_)); })),
        kFloatTolerance);
    EXPECT_LE(
        relative_error(dw, finite_differences(
                               w, [&](const Vector& v) { return dot(dy, plain_convolution(x, v, shape_)); })),
        kFloatTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvolutionShapes,
                         ::testing::Values(ConvolutionShape{{2, 5, 4, 3}, 4, {1, 1, 0}},
                                           ConvolutionShape{{2, 5, 4, 3}, 4, {1, 2, 0}},
                                           ConvolutionShape{{2, 5, 6, 3}, 2, {3, 1, 1}},
                                           ConvolutionShape{{1, 6, 5, 2}, 3, {3, 2, 1}},
                                           ConvolutionShape{{1, 9, 8, 3}, 2, {7, 2, 3}},
                                           ConvolutionShape{{1, 8, 8, 3}, 5, {4, 4, 0}},
                                           ConvolutionShape{{1, 1, 2, 2}, 2, {5, 1, 2}}));

// More lines than the matrix of pixels has room for: several tiles, of which the last is smaller.
TEST(Convolution, SumsTheWeightGradientOverTiles) {
    const ConvolutionShape shape{{3, 40, 40, 24}, 2, {3, 1, 1}};
    const Floats x = normals(shape.image.elements(), "x"), w = normals(2 * 9 * 24, "w");
    const Floats dy = normals(shape.result().elements(), "dy");
    Floats y(dy.size(), NAN), dw(w.size(), NAN), dx(x.size(), NAN);
    convolution_forward(x.data(), w.data(), nullptr, y.data(), shape);
    EXPECT_LE(relative_error(y, plain_convolution(in_double(x), in_double(w), shape)), kFloatTolerance);
    convolution_backward_weight(dy.data(), x.data(), dw.data(), shape);
    convolution_backward_input(dy.data(), w.data(), dx.data(), shape);
    // A convolution is linear in both: each gradient times its operand is the result times its gradient.
    const double expected = dot(in_double(dy), in_double(y));
    EXPECT_NEAR(dot(in_double(dw), in_double(w)), expected, 1e-5 * std::abs(expected) + 1e-3);
    EXPECT_NEAR(dot(in_double(dx), in_double(x)), expected, 1e-5 * std::abs(expected) + 1e-3);
}

TEST(Window, IsUnpackedAsItWasPacked) {
    const Window window{7, 2, 3};
    EXPECT_EQ(Window::unpacked(window.packed()), window);
    EXPECT_EQ(window.places(224), 112);
    EXPECT_EQ((Window{3, 2, 1}.places(112)), 56);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
