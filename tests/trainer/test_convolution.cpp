// Convolutions compared with the sum that defines them, their gradients with finite differences of it.
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/convolution.h"
#include "trainer/kernels/onednn.h"

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

// The ways to convolve: what this machine chooses for a shape, and matmuls.
struct Way {
    const char* name;
    decltype(&convolution_forward) forward;
    decltype(&convolution_backward_input) backward_input;
    decltype(&convolution_backward_weight) backward_weight;
};
constexpr Way kChosen{"Chosen", &convolution_forward, &convolution_backward_input,
                      &convolution_backward_weight};
constexpr Way kMatmul{"Matmul", &convolution_forward_by_matmul, &convolution_backward_input_by_matmul,
                      &convolution_backward_weight_by_matmul};

class ConvolutionShapes : public ::testing::TestWithParam<std::tuple<Way, ConvolutionShape>> {
  protected:
    const Way& way_ = std::get<Way>(GetParam());
    const ConvolutionShape& shape_ = std::get<ConvolutionShape>(GetParam());
    const std::size_t weights_ = static_cast<std::size_t>(shape_.out) * shape_.depth();
    const Floats x_ = normals(shape_.image.elements(), "x"), w_ = normals(weights_, "w");
    const Floats dy_ = normals(shape_.result().elements(), "dy");
};

TEST_P(ConvolutionShapes, AgreesWithTheSumThatDefinesIt) {
    Floats y(shape_.result().elements(), NAN);
    way_.forward(x_.data(), w_.data(), nullptr, y.data(), shape_);
    EXPECT_LE(relative_error(y, plain_convolution(in_double(x_), in_double(w_), shape_)), kFloatTolerance);
}

TEST_P(ConvolutionShapes, AddsTheBias) {
    const Floats bias = normals(static_cast<std::size_t>(shape_.out), "bias");
    Floats y(shape_.result().elements(), NAN);
    way_.forward(x_.data(), w_.data(), bias.data(), y.data(), shape_);
    Vector expected = plain_convolution(in_double(x_), in_double(w_), shape_);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % bias.size()];
    EXPECT_LE(relative_error(y, expected), kFloatTolerance);
}

TEST_P(ConvolutionShapes, GradientsAgreeWithFiniteDifferences) {
    Floats dx(x_.size(), NAN), dw(weights_, NAN);
    way_.backward_input(dy_.data(), w_.data(), dx.data(), shape_);
    way_.backward_weight(dy_.data(), x_.data(), dw.data(), shape_);
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
                         ::testing::Combine(::testing::Values(kChosen, kMatmul),
                                            ::testing::Values(ConvolutionShape{{2, 5, 4, 3}, 4, {1, 1, 0}},
                                                              ConvolutionShape{{2, 5, 4, 3}, 4, {1, 2, 0}},
                                                              ConvolutionShape{{2, 5, 6, 3}, 2, {3, 1, 1}},
                                                              ConvolutionShape{{1, 6, 5, 2}, 3, {3, 2, 1}},
                                                              ConvolutionShape{{1, 9, 8, 3}, 2, {7, 2, 3}},
                                                              ConvolutionShape{{1, 8, 8, 3}, 5, {4, 4, 0}},
                                                              ConvolutionShape{{1, 1, 2, 2}, 2, {5, 1, 2}})),
                         [](const auto& test) {
                             return std::get<Way>(test.param).name + std::to_string(test.index);
                         });

// Channels that fill the registers, and some that fill the last one in part: oneDNN has code for these. Its
// result is that of the matmuls, which the tests above hold to the definition.
class CompiledConvolution : public ::testing::TestWithParam<ConvolutionShape> {};

TEST_P(CompiledConvolution, AgreesWithMatmuls) {
    const ConvolutionShape& shape = GetParam();
    const std::size_t weights = static_cast<std::size_t>(shape.out) * shape.depth();
    const Floats x = normals(shape.image.elements(), "x"), w = normals(weights, "w");
    const Floats dy = normals(shape.result().elements(), "dy"), bias = normals(shape.out, "bias");
    struct Results {
        Floats y, biased, dx, dw;
    };
    const auto results_of = [&](const Way& way) {
        Results r{Floats(dy.size(), NAN), Floats(dy.size(), NAN), Floats(x.size(), NAN),
                  Floats(weights, NAN)};
        way.forward(x.data(), w.data(), nullptr, r.y.data(), shape);
        way.forward(x.data(), w.data(), bias.data(), r.biased.data(), shape);
        way.backward_input(dy.data(), w.data(), r.dx.data(), shape);
        way.backward_weight(dy.data(), x.data(), r.dw.data(), shape);
        return r;
    };
    const Results chosen = results_of(kChosen), plain = results_of(kMatmul);
    EXPECT_LE(relative_error(chosen.y, in_double(plain.y)), kFloatTolerance);
    EXPECT_LE(relative_error(chosen.biased, in_double(plain.biased)), kFloatTolerance);
    EXPECT_LE(relative_error(chosen.dx, in_double(plain.dx)), kFloatTolerance);
    EXPECT_LE(relative_error(chosen.dw, in_double(plain.dw)), kFloatTolerance);
    const Results again = results_of(kChosen);
    EXPECT_EQ(chosen.y, again.y);
    EXPECT_EQ(chosen.dx, again.dx);
    EXPECT_EQ(chosen.dw, again.dw);
    // A second thread compiles its own.
    Results elsewhere;
    std::thread([&] { elsewhere = results_of(kChosen); }).join();
    EXPECT_EQ(chosen.biased, elsewhere.biased);
    EXPECT_EQ(chosen.dw, elsewhere.dw);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CompiledConvolution,
                         ::testing::Values(ConvolutionShape{{2, 14, 14, 64}, 32, {1, 1, 0}},
                                           ConvolutionShape{{2, 14, 13, 32}, 64, {1, 2, 0}},
                                           ConvolutionShape{{2, 15, 14, 32}, 48, {3, 1, 1}},
                                           ConvolutionShape{{2, 14, 15, 32}, 32, {3, 2, 1}},
                                           ConvolutionShape{{2, 32, 32, 3}, 64, {7, 2, 3}},
                                           ConvolutionShape{{2, 32, 32, 3}, 32, {16, 16, 0}},
                                           ConvolutionShape{{2, 9, 9, 20}, 24, {3, 1, 1}},
                                           ConvolutionShape{{2, 8, 8, 8}, 16, {3, 2, 1}}));

// Otherwise the tests above would compare matmuls with matmuls.
TEST(Convolution, OneDnnHasCodeForWideRegisters) {
#if defined(__x86_64__)
    const OneDnn& library = OneDnn::get();
    if (!library.usable() || !__builtin_cpu_supports("avx2")) GTEST_SKIP() << library.description();
    for (const ConvolutionShape& shape : {ConvolutionShape{{2, 14, 14, 64}, 32, {1, 1, 0}},
                                          ConvolutionShape{{2, 15, 14, 32}, 48, {3, 1, 1}}}) {
        const Floats x = normals(shape.image.elements(), "x"), dy = normals(shape.result().elements(), "dy");
        const Floats w = normals(static_cast<std::size_t>(shape.out) * shape.depth(), "w");
        Floats y(dy.size(), NAN), dx(x.size(), NAN), dw(w.size(), NAN), expected = dw;
        EXPECT_TRUE(library.convolve(x.data(), w.data(), nullptr, y.data(), shape));
        EXPECT_TRUE(library.convolve_backward_input(dy.data(), w.data(), dx.data(), shape));
        EXPECT_TRUE(library.convolve_backward_weight(dy.data(), x.data(), dw.data(), shape));
        convolution_backward_weight_by_matmul(dy.data(), x.data(), expected.data(), shape);
        EXPECT_LE(relative_error(dw, in_double(expected)), kFloatTolerance);
    }
#else
    GTEST_SKIP() << "oneDNN's code is for x86";
#endif
}

#ifndef PR_SET_MDWE  // Linux 6.3
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#define PR_GET_MDWE 66
#endif

// As under systemd's MemoryDenyWriteExecute=: oneDNN then compiles nothing. No other test has this shape, so
// that its code is not in the library's cache.
TEST(Convolution, WhereNoCodeCanBeMadeItIsAMatmul) {
    if (!OneDnn::get().usable()) GTEST_SKIP() << OneDnn::get().description();
    if (prctl(PR_GET_MDWE, 0, 0, 0, 0) < 0) GTEST_SKIP() << "the kernel cannot refuse writable code";
    const ConvolutionShape shape{{1, 10, 11, 16}, 16, {3, 1, 1}};
    const Floats x = normals(shape.image.elements(), "x"), dy = normals(shape.result().elements(), "dy");
    const Floats w = normals(static_cast<std::size_t>(shape.out) * shape.depth(), "w");
    const auto is_matmul = [&] {
        Floats y(dy.size(), NAN), dx(x.size(), NAN), dw(w.size(), NAN);
        Floats plain_y = y, plain_dx = dx, plain_dw = dw;
        kChosen.forward(x.data(), w.data(), nullptr, y.data(), shape);
        kChosen.backward_input(dy.data(), w.data(), dx.data(), shape);
        kChosen.backward_weight(dy.data(), x.data(), dw.data(), shape);
        kMatmul.forward(x.data(), w.data(), nullptr, plain_y.data(), shape);
        kMatmul.backward_input(dy.data(), w.data(), plain_dx.data(), shape);
        kMatmul.backward_weight(dy.data(), x.data(), plain_dw.data(), shape);
        return y == plain_y && dx == plain_dx && dw == plain_dw &&
               !OneDnn::get().convolve(x.data(), w.data(), nullptr, y.data(), shape);
    };
    EXPECT_EXIT(
        {
            if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0) std::_Exit(2);
            std::_Exit(is_matmul() ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "");
}

TEST(Convolution, SaysHowItIsDone) {
    const std::string expected = OneDnn::get().usable() ? "oneDNN " : Blas::get().core() + " sgemm (";
    EXPECT_EQ(convolution_method().substr(0, expected.size()), expected);
    RecordProperty("way", convolution_method());
}

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
