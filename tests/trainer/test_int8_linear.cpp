// Linear layers with weights in int8: what quantizing changes, and the matmul compared with its plain form.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/int8_linear.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

struct Quantized {
    std::vector<std::int8_t> q;
    Floats scales;
};

Quantized quantized(const Floats& w, std::size_t rows) {
    Quantized made{std::vector<std::int8_t>(w.size()), Floats(rows, NAN)};
    EXPECT_TRUE(quantize_rows(w.data(), made.q.data(), made.scales.data(), rows, w.size() / rows));
    return made;
}

// Of a row whose largest weight is 127: each weight is its own number, and a half goes to the even neighbour.
TEST(Int8Weights, AreRoundedToTheNearestOfTheirRow) {
    const Quantized made = quantized({127, 0.5F, 1.5F, -2.5F, 0.25F, -0.125F, 0.0625F, 0}, 2);
    EXPECT_EQ(made.scales, (Floats{1, 0.25F / 127}));
    EXPECT_EQ(made.q, (std::vector<std::int8_t>{127, 0, 2, -2, 127, -64, 32, 0}));
}

TEST(Int8Weights, OfARowOfZerosAreZero) {
    const Quantized made = quantized(Floats(6, 0.0F), 2);
    EXPECT_EQ(made.scales, Floats(2, 0.0F));
    EXPECT_EQ(made.q, std::vector<std::int8_t>(6, 0));
}

// Where the scale itself is subnormal or zero nothing overflows.
TEST(Int8Weights, HaveNoRoomForLessThanTheSmallestScale) {
    constexpr float kLeast = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(quantized({kLeast, -kLeast}, 1).q, (std::vector<std::int8_t>{0, 0}));
    EXPECT_EQ(quantized({190 * kLeast, -190 * kLeast}, 1).q, (std::vector<std::int8_t>{127, -127}));
}

TEST(Int8Weights, ThatAreNotFiniteAreRefused) {
    for (const float wrong : {NAN, INFINITY, -INFINITY}) {
        const Floats w = {1, 2, wrong, 4};
        std::vector<std::int8_t> q(4);
        Floats scales(2);
        EXPECT_FALSE(quantize_rows(w.data(), q.data(), scales.data(), 2, 2));
    }
}

struct Shape {
    int rows, in, out;
};

// Few rows, whose weights are read once, and more; fewer and more columns than a tile has.
class Int8Linear : public ::testing::TestWithParam<Shape> {
  protected:
    const int rows = GetParam().rows, in = GetParam().in, out = GetParam().out;
    const Floats x = normals(static_cast<std::size_t>(rows) * in, "x");
    const Floats w = normals(static_cast<std::size_t>(out) * in, "w");
    const Floats b = normals(out, "b");
    const Quantized held = quantized(w, static_cast<std::size_t>(out));

    Floats forward(const float* bias) const {
        Floats y(static_cast<std::size_t>(rows) * out, NAN);
        int8_linear_forward(x.data(), held.q.data(), held.scales.data(), bias, y.data(), rows, in, out);
        return y;
    }
};

TEST_P(Int8Linear, IsTheProductWithTheScaledWeightsPlusBias) {
    Vector scaled;
    for (std::size_t i = 0; i < held.q.size(); ++i)
        scaled.push_back(static_cast<double>(held.q[i]) *
                         static_cast<double>(held.scales[i / static_cast<std::size_t>(in)]));
    EXPECT_LE(relative_error(forward(b.data()),
                             reference::linear_forward(in_double(x), scaled, in_double(b), rows, in, out)),
              kFloatTolerance);
    EXPECT_LE(
        relative_error(forward(nullptr), reference::linear_forward(in_double(x), scaled, {}, rows, in, out)),
        kFloatTolerance);
}

TEST_P(Int8Linear, IsOffByHalfAScaleOfEachInput) {
    const Floats y = forward(b.data());
    const Vector exact = reference::linear_forward(in_double(x), in_double(w), in_double(b), rows, in, out);
    for (std::size_t at = 0; at < y.size(); ++at) {
        const std::size_t r = at / static_cast<std::size_t>(out), j = at % static_cast<std::size_t>(out);
        double sum = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(in); ++i)
            sum += std::abs(x[r * static_cast<std::size_t>(in) + i]);
        EXPECT_LE(std::abs(y[at] - exact[at]), 0.5 * held.scales[j] * sum + kFloatTolerance * sum)
            << "row " << r << ", column " << j;
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Int8Linear,
                         ::testing::Values(Shape{1, 7, 1}, Shape{1, 70, 6}, Shape{3, 16, 5},
                                           Shape{4, 40, 130}, Shape{5, 33, 64}, Shape{33, 65, 17},
                                           Shape{130, 48, 150}),
                         [](const auto& shape) {
                             return std::to_string(shape.param.rows) + "x" + std::to_string(shape.param.in) +
                                    "x" + std::to_string(shape.param.out);
                         });

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
