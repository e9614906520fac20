// The kernels of networks for images on a CUDA device compared with the CPU's: convolutions as implicit GEMM,
// pooling, batch norms.
#include "tests/trainer/cuda_testing.h"
#include "trainer/cuda/divisor.h"
#include "trainer/kernels/batch_norm.h"
#include "trainer/kernels/convolution.h"
#include "trainer/kernels/pool.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;
using kernels::ConvolutionShape;
using kernels::ImageShape;
using kernels::Window;

class CudaImages : public CudaTest {};

std::string text(const ImageShape& image, const Window& window) {
    return std::to_string(image.batch) + " x " + std::to_string(image.height) + " x " +
           std::to_string(image.width) + " x " + std::to_string(image.channels) + " under " +
           std::to_string(window.size) + " by " + std::to_string(window.stride) + ", border " +
           std::to_string(window.padding);
}

// --- division --------------------------------------------------------------------------------------------

// Around multiples, where a quotient changes, up to the largest number.
TEST(Divisors, DivideAsTheProcessorDoes) {
    constexpr std::int64_t kMost = 0x7fffffff;
    for (const int by :
         {1, 2, 3, 5, 7, 49, 63, 64, 65, 147, 1000, 12544, 65535, 65537, 1 << 30, 0x7ffffffe, 0x7fffffff}) {
        const Divisor divisor(by);
        for (const std::int64_t times : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, kMost / by / 2,
                                         kMost / by - 1, kMost / by}) {
            for (const std::int64_t n : {times * by - 1, times * by, times * by + 1, kMost}) {
                if (n < 0 || n > kMost) continue;
                ASSERT_EQ(divisor.of(static_cast<int>(n)), n / by) << n << " / " << by;
            }
        }
    }
}

// --- convolutions ----------------------------------------------------------------------------------------

// Channels that come in packs of 4, and others; results beside the tiles of 64 and 128; windows that hang
// over the image, miss pixels, or are wider than it; more depth than one block sums.
constexpr ConvolutionShape kConvolutions[] = {
    {{1, 1, 1, 1}, 1, {1, 1, 0}},  {{2, 5, 4, 3}, 4, {1, 1, 0}},    {{2, 5, 4, 8}, 4, {1, 1, 0}},
    {{1, 1, 1, 1}, 1, {3, 1, 1}},  {{2, 5, 4, 3}, 4, {1, 2, 0}},    {{2, 6, 5, 8}, 12, {1, 2, 0}},
    {{2, 5, 6, 3}, 2, {3, 1, 1}},  {{2, 9, 7, 8}, 72, {3, 1, 1}},   {{1, 6, 5, 2}, 3, {3, 2, 1}},
    {{2, 9, 8, 12}, 8, {3, 2, 1}}, {{1, 9, 8, 3}, 2, {7, 2, 3}},    {{2, 20, 18, 3}, 64, {7, 2, 3}},
    {{1, 8, 8, 3}, 5, {4, 4, 0}},  {{1, 9, 11, 4}, 4, {2, 3, 0}},   {{1, 7, 7, 4}, 4, {3, 5, 2}},
    {{1, 1, 2, 2}, 2, {5, 1, 2}},  {{1, 4, 4, 132}, 68, {3, 1, 1}}, {{1, 3, 3, 65}, 130, {3, 1, 0}},
    {{1, 5, 3, 66}, 7, {3, 2, 1}}, {{3, 17, 16, 5}, 3, {3, 1, 1}}};

struct ConvolutionOperands {
    explicit ConvolutionOperands(const ConvolutionShape& of)
        : shape(of),
          x(normals(of.image.elements(), "x")),
          w(normals(static_cast<std::size_t>(of.out) * static_cast<std::size_t>(of.depth()), "w")),
          bias(normals(static_cast<std::size_t>(of.out), "bias")),
          dy(normals(of.result().elements(), "dy")) {}

    Comparison of(plan::Kernel kernel) const {
        const ImageShape& image = shape.image;
        return {kernel,
                plan::DType::fp32,
                {image.batch, image.height, image.width, image.channels, shape.out, shape.window.packed()}};
    }
    Comparison forward(bool biased) const {
        Comparison comparison = of(plan::Kernel::convolution_forward);
        comparison.args(unwritten<float>(dy.size()), x, w);
        return biased ? comparison.arg(bias) : comparison;
    }
    Comparison backward_input() const {
        Comparison comparison = of(plan::Kernel::convolution_backward_input);
        return comparison.args(unwritten<float>(x.size()), dy, w);
    }
    Comparison backward_weight() const {
        Comparison comparison = of(plan::Kernel::convolution_backward_weight);
        return comparison.args(unwritten<float>(w.size()), dy, x);
    }

    ConvolutionShape shape;
    Floats x, w, bias, dy;
};

TEST_F(CudaImages, ConvolutionsAreTheCpus) {
    for (const ConvolutionShape& shape : kConvolutions) {
        const ConvolutionOperands operands(shape);
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(text(shape.image, shape.window) + " to " + std::to_string(shape.out) +
                         ", shifted by " + std::to_string(shift));
            operands.forward(false).shifted(shift).run().expect_near<float>(0);
            operands.forward(true).shifted(shift).run().expect_near<float>(0);
            operands.backward_input().shifted(shift).run().expect_near<float>(0);
            operands.backward_weight().shifted(shift).run().expect_near<float>(0);
        }
    }
}

// In each case the depth is summed by several blocks, some of which have less of it: 1152 elements of a
// window, 1632 pixels, 513 channels of a result, whose pixels have 4, 2, 2 and 1 taps.
TEST_F(CudaImages, ConvolutionsOfWhichSeveralBlocksSumTheDepth) {
    ConvolutionOperands({{1, 3, 3, 128}, 5, {3, 1, 1}}).forward(true).run().expect_near<float>(0);
    ConvolutionOperands({{6, 16, 17, 3}, 5, {3, 1, 1}}).backward_weight().run().expect_near<float>(0);
    ConvolutionOperands({{1, 5, 5, 3}, 513, {3, 2, 1}}).backward_input().run().expect_near<float>(0);
    ConvolutionOperands({{1, 5, 5, 8}, 512, {3, 2, 1}}).backward_input().run().expect_near<float>(0);
}

TEST_F(CudaImages, ConvolutionsFlagWhatIsNotFinite) {
    ConvolutionOperands operands({{1, 4, 4, 4}, 4, {3, 1, 1}});
    EXPECT_EQ(operands.forward(true).checked(-1).run().cuda<std::int32_t>(4)[0], -1);
    operands.x[9] = INFINITY;
    EXPECT_EQ(operands.forward(true).checked(-1).run().cuda<std::int32_t>(4)[0], 5);
}

// Several blocks sum the depth of both.
TEST_F(CudaImages, ConvolutionsGiveTheSameBitsAgain) {
    const ConvolutionOperands of_pixels({{6, 16, 17, 3}, 5, {3, 1, 1}});
    const ConvolutionOperands of_channels({{1, 5, 5, 8}, 512, {3, 2, 1}});
    const Floats dw = of_pixels.backward_weight().run().cuda<float>(0);
    const Floats dx = of_channels.backward_input().run().cuda<float>(0);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(of_pixels.backward_weight().run().cuda<float>(0), dw);
        EXPECT_EQ(of_channels.backward_input().run().cuda<float>(0), dx);
    }
}

// --- pooling ---------------------------------------------------------------------------------------------

struct PoolCase {
    ImageShape image;
    Window window;
};
constexpr PoolCase kPools[] = {{{1, 1, 1, 1}, {1, 1, 0}},   {{2, 6, 6, 3}, {2, 2, 0}},
                               {{2, 7, 5, 17}, {3, 2, 1}},  {{1, 5, 5, 1}, {3, 1, 1}},
                               {{1, 9, 8, 300}, {3, 2, 1}}, {{1, 10, 7, 4}, {2, 3, 0}},
                               {{3, 4, 4, 64}, {3, 2, 1}},  {{1, 3, 3, 2}, {3, 3, 0}}};

Comparison max_pool(const PoolCase& of, const Floats& x) {
    const std::size_t n = of.image.under(of.window, of.image.channels).elements();
    Comparison pool(plan::Kernel::max_pool_forward, plan::DType::fp32,
                    {of.image.batch, of.image.height, of.image.width, of.image.channels, of.window.packed()});
    return pool.args(unwritten<float>(n), testing::Tokens(n, -1), x);
}

// Values of one digit, of which many are equal.
TEST_F(CudaImages, MaxPoolIsTheCpusBitForBit) {
    for (const PoolCase& each : kPools) {
        SCOPED_TRACE(text(each.image, each.window));
        Floats x = normals(each.image.elements(), "x");
        for (float& value : x) value = std::round(value * 2.0f);
        Comparison forward = max_pool(each, x);
        forward.run();
        forward.expect_same<float>(0);
        forward.expect_same<std::int32_t>(1);
        const Floats dy = normals(forward.cpu<float>(0).size(), "dy");
        Comparison backward(plan::Kernel::max_pool_backward, plan::DType::fp32,
                            {each.image.batch, each.image.height, each.image.width, each.image.channels,
                             each.window.packed()});
        backward.args(unwritten<float>(x.size()), dy, forward.cpu<std::int32_t>(1)).run();
        backward.expect_same<float>(0);
    }
}

TEST_F(CudaImages, MaxPoolKeepsNan) {
    const PoolCase of{{1, 4, 4, 1}, {2, 2, 0}};
    Floats x = normals(16, "x");
    x[1] = x[4] = x[11] = x[14] = NAN;  // two in the first window, two in the last
    Comparison forward = max_pool(of, x);
    forward.run().expect_same<std::int32_t>(1);
    const Floats y = forward.cuda<float>(0);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[3]));
    EXPECT_FALSE(std::isnan(y[1]) || std::isnan(y[2]));
}

TEST_F(CudaImages, AdaptiveAverageIsTheCpus) {
    for (const auto& [image, side] :
         {std::pair(ImageShape{2, 5, 7, 19}, 1), std::pair(ImageShape{2, 5, 7, 3}, 3),
          std::pair(ImageShape{1, 4, 4, 5}, 4), std::pair(ImageShape{1, 2, 1, 3}, 7),
          std::pair(ImageShape{1, 1, 1, 1}, 1), std::pair(ImageShape{2, 7, 7, 70}, 1),
          std::pair(ImageShape{1, 14, 13, 33}, 7)}) {
        SCOPED_TRACE(text(image, {}) + ", " + std::to_string(side) + " parts a side");
        const std::size_t n = static_cast<std::size_t>(image.batch * side * side * image.channels);
        const std::array<std::int64_t, 6> dims = {image.batch, image.height, image.width, image.channels,
                                                  side};
        Comparison(plan::Kernel::adaptive_average_forward, plan::DType::fp32, dims)
            .args(unwritten<float>(n), normals(image.elements(), "x"))
            .run()
            .expect_near<float>(0);
        Comparison(plan::Kernel::adaptive_average_backward, plan::DType::fp32, dims)
            .args(unwritten<float>(image.elements()), normals(n, "dy"))
            .run()
            .expect_same<float>(0);
    }
}

// --- batch norms -----------------------------------------------------------------------------------------

// One row; columns beside packs of 4 and tiles of 128; more rows than a slice has, and than a thread adds.
struct MatrixShape {
    int rows, columns;
    std::size_t elements() const {
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    }
};
constexpr MatrixShape kMatrices[] = {{1, 1},     {2, 4},    {5, 3},    {33, 64},  {130, 3},
                                     {200, 150}, {49, 516}, {1300, 1}, {70000, 2}};

std::string text_of(const MatrixShape& shape) {
    return std::to_string(shape.rows) + " x " + std::to_string(shape.columns);
}

// The operands of all kernels of a batch norm, with a mean of 3 so that it matters.
struct NormOperands {
    explicit NormOperands(const MatrixShape& of)
        : shape(of),
          x(normals(of.elements(), "x")),
          dy(normals(of.elements(), "dy")),
          gamma(normals(of.columns, "gamma")),
          beta(normals(of.columns, "beta")),
          mean(of.columns, 3.0f),
          rstd(normals(of.columns, "rstd")),
          average(normals(of.columns, "average")),
          variance(normals(of.columns, "variance")) {
        for (float& value : x) value = 2.0f * value + 3.0f;
        for (float& value : rstd) value = 0.5f + 0.05f * value;
        for (float& value : variance) value = 1.0f + value * value;
    }
    Comparison of(plan::Kernel kernel, std::int64_t ranks = 0) const {
        return {kernel, plan::DType::fp32, {shape.rows, shape.columns, ranks}, {0.1}};
    }
    Floats result() const { return unwritten<float>(shape.elements()); }
    Floats column() const { return unwritten<float>(static_cast<std::size_t>(shape.columns)); }

    MatrixShape shape;
    Floats x, dy, gamma, beta, mean, rstd, average, variance;
};

// 1 / deviation of a single row is 1 / sqrt(eps), which makes errors of x 300 times as large.
double tolerance_of(const MatrixShape& shape) {
    return shape.rows == 1 ? 1e-3 : testing::kFloatTolerance;
}

void expect_all_near(const Comparison& comparison, std::initializer_list<std::size_t> args,
                     double tolerance) {
    for (const std::size_t arg : args) comparison.expect_near<float>(arg, tolerance);
}

TEST_F(CudaImages, BatchNormsAreTheCpus) {
    for (const MatrixShape& shape : kMatrices) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(text_of(shape) + ", shifted by " + std::to_string(shift));
            const double near = tolerance_of(shape);
            const NormOperands in(shape);
            Comparison forward = in.of(plan::Kernel::batch_norm_forward);
            forward.args(in.result(), in.column(), in.column(), in.average, in.variance, in.x, in.gamma,
                         in.beta);
            expect_all_near(forward.shifted(shift).run(), {0, 1, 2, 3, 4}, near);
            Comparison evaluate = in.of(plan::Kernel::batch_norm_evaluate);
            evaluate.args(in.result(), in.average, in.variance, in.x, in.gamma, in.beta);
            expect_all_near(evaluate.shifted(shift).run(), {0}, near);
            Comparison backward = in.of(plan::Kernel::batch_norm_backward);
            backward.args(in.result(), in.column(), in.column(), in.dy, in.x, in.gamma, in.mean, in.rstd);
            expect_all_near(backward.shifted(shift).run(), {0, 1, 2}, near);
        }
    }
}

// Three ranks, the means and rows of which differ: a gradient is made from the sums of all.
TEST_F(CudaImages, SyncedBatchNormsAreTheCpus) {
    constexpr std::int64_t kRanks = 3;
    for (const MatrixShape& shape : kMatrices) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(text_of(shape) + ", shifted by " + std::to_string(shift));
            const auto columns = static_cast<std::size_t>(shape.columns);
            const double near = testing::kFloatTolerance;
            const NormOperands in(shape);
            Comparison statistics = in.of(plan::Kernel::batch_norm_statistics);
            statistics.args(unwritten<float>(2 * columns + 1), in.x);
            expect_all_near(statistics.shifted(shift).run(), {0}, near);
            EXPECT_EQ(statistics.cuda<float>(0).back(), static_cast<float>(shape.rows));

            Floats all;
            for (std::int64_t rank = 0; rank < kRanks; ++rank) {
                for (std::size_t c = 0; c < columns; ++c) all.push_back(static_cast<float>(rank));
                for (std::size_t c = 0; c < columns; ++c) all.push_back(static_cast<float>(shape.rows));
                all.push_back(static_cast<float>(shape.rows));
            }
            Comparison forward = in.of(plan::Kernel::batch_norm_synced_forward, kRanks);
            forward.args(in.result(), in.column(), in.column(), in.average, in.variance, in.x, in.gamma,
                         in.beta, all);
            expect_all_near(forward.shifted(shift).run(), {0, 1, 2, 3, 4}, near);

            Comparison sums = in.of(plan::Kernel::batch_norm_gradient_sums);
            sums.args(unwritten<float>(2 * columns), in.column(), in.column(), in.dy, in.x, in.mean, in.rstd);
            expect_all_near(sums.shifted(shift).run(), {0, 1, 2}, near);
            Comparison backward = in.of(plan::Kernel::batch_norm_synced_backward, kRanks);
            backward.args(in.result(), in.dy, in.x, in.gamma, in.mean, in.rstd,
                          normals(2 * columns, "sums of all"));
            expect_all_near(backward.shifted(shift).run(), {0}, near);
        }
    }
}

TEST_F(CudaImages, BatchNormsOmitGradientsThatAreNotNeeded) {
    const NormOperands in({40, 6});
    Comparison only_input = in.of(plan::Kernel::batch_norm_backward);
    only_input.arg(in.result()).nothing().nothing().args(in.dy, in.x, in.gamma, in.mean, in.rstd).run();
    only_input.expect_near<float>(0);
    Comparison only_parameters = in.of(plan::Kernel::batch_norm_backward);
    only_parameters.nothing().args(in.column(), in.column(), in.dy, in.x, in.gamma, in.mean, in.rstd).run();
    expect_all_near(only_parameters, {1, 2}, testing::kFloatTolerance);
    Comparison only_sums = in.of(plan::Kernel::batch_norm_gradient_sums);
    only_sums.arg(unwritten<float>(12)).nothing().nothing().args(in.dy, in.x, in.mean, in.rstd).run();
    only_sums.expect_near<float>(0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
