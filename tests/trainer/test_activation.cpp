// Activations and gated SiLU compared with their plain forms, their gradients compared with finite
// differences, and helpers that loops share.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/activation.h"
#include "trainer/kernels/cost.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

constexpr std::size_t kCount = 1003;  // not a multiple of a vector
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Exp, IsWithinThreeRoundingsOfTheLibraryOverItsRange) {
    for (float x = -87.0f; x <= 88.0f; x += 0.0137f) {
        const double expected = std::exp(static_cast<double>(x));
        EXPECT_NEAR(exp_approximate(x) / expected, 1.0, 1.8e-7) << x;  // 3 * 2^-24
    }
}

TEST(Exp, IsOneAtZeroClampedBeyondItsRangeAndPassesNotANumberOn) {
    EXPECT_EQ(exp_approximate(0.0f), 1.0f);
    EXPECT_LT(exp_approximate(-kInfinity), 1.7e-38f);
    EXPECT_GT(exp_approximate(kInfinity), 1.6e38f);
    EXPECT_TRUE(std::isfinite(exp_approximate(kInfinity)));
    EXPECT_TRUE(std::isnan(exp_approximate(NAN)));
}

// 1 + 2 + … + n is exact in fp32 here, so a lane that is omitted or counted twice is detected.
TEST(LaneSum, CountsEveryElementOnce) {
    for (const std::size_t n : {0, 1, 15, 16, 17, 31, 32, 33, 1000}) {
        EXPECT_EQ(lane_sum(n, [](std::size_t i) { return static_cast<float>(i + 1); }),
                  static_cast<float>(n * (n + 1) / 2))
            << n;
    }
}

TEST(LaneMax, FindsTheLargestAtAnyPlace) {
    for (const std::size_t n : {1, 5, 16, 19, 40}) {
        for (std::size_t at = 0; at < n; ++at) {
            Floats x(n, -3.0f);
            x[at] = -1.0f;
            EXPECT_EQ(lane_max(x.data(), n), -1.0f) << n << " " << at;
        }
    }
}

TEST(Relu, PassesWhatIsPositive) {
    const Floats x = {-2.0f, -0.5f, 0.0f, 0.5f, 2.0f};
    Floats y(5, NAN);
    relu_forward(x.data(), y.data(), x.size());
    EXPECT_EQ(y, (Floats{0.0f, 0.0f, 0.0f, 0.5f, 2.0f}));
    const Floats dy = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
    Floats dx(5, NAN);
    relu_backward(dy.data(), y.data(), dx.data(), x.size());
    EXPECT_EQ(dx, (Floats{0.0f, 0.0f, 0.0f, 4.0f, 5.0f}));
}

TEST(Relu, DoesNotHideNotANumber) {
    float x = NAN;
    relu_forward(&x, &x, 1);
    EXPECT_TRUE(std::isnan(x));
}

TEST(Relu, AgreesWithThePlainFormAndInPlace) {
    Floats x = normals(kCount, "x");
    const Floats dy = normals(kCount, "dy");
    const Vector y = reference::relu_forward(in_double(x));
    const Vector dx = reference::relu_backward(in_double(dy), y);
    relu_forward(x.data(), x.data(), kCount);
    EXPECT_EQ(relative_error(x, y), 0.0);
    Floats gradient = dy;
    relu_backward(gradient.data(), x.data(), gradient.data(), kCount);
    EXPECT_EQ(relative_error(gradient, dx), 0.0);
}

TEST(Relu, GradientAgreesWithFiniteDifferences) {
    const Vector x = {-1.0, -0.3, 0.2, 0.9};  // away from the kink
    const Vector dy = {1.0, 2.0, 3.0, 4.0};
    const auto loss = [&](const Vector& v) { return dot(dy, reference::relu_forward(v)); };
    EXPECT_LE(
        relative_error(reference::relu_backward(dy, reference::relu_forward(x)), finite_differences(x, loss)),
        kFiniteDifferenceTolerance);
}

TEST(SquaredRelu, SquaresWhatIsPositive) {
    const Floats x = {-2.0f, -0.0f, 0.5f, 3.0f, -kInfinity, kInfinity};
    const Floats dy = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
    Floats y(6, NAN), dx(6, NAN);
    squared_relu_forward(x.data(), y.data(), x.size());
    squared_relu_backward(dy.data(), x.data(), dx.data(), x.size());
    EXPECT_EQ(y, (Floats{0.0f, 0.0f, 0.25f, 9.0f, 0.0f, kInfinity}));
    EXPECT_EQ(dx, (Floats{0.0f, 0.0f, 3.0f, 24.0f, 0.0f, kInfinity}));
}

TEST(SquaredRelu, DoesNotHideNotANumber) {
    float x = NAN, gradient = 1.0f;
    squared_relu_backward(&gradient, &x, &gradient, 1);
    squared_relu_forward(&x, &x, 1);
    EXPECT_TRUE(std::isnan(x));
    EXPECT_TRUE(std::isnan(gradient));
}

TEST(SquaredRelu, GradientAgreesWithFiniteDifferences) {
    const Vector x = in_double(normals(20, "x")), dy = in_double(normals(20, "dy"));
    const auto loss = [&](const Vector& v) { return dot(dy, reference::squared_relu_forward(v)); };
    EXPECT_LE(relative_error(reference::squared_relu_backward(dy, x), finite_differences(x, loss)),
              kFiniteDifferenceTolerance);
}

// A maximum and a square; then a maximum and two multiplications. The forward reads x and writes y; the
// backward reads dy and x and writes dx.
TEST(SquaredRelu, CostsAFewOperationsAndItsOperands) {
    EXPECT_EQ(squared_relu_forward_cost(10), (Cost{20, 80}));
    EXPECT_EQ(squared_relu_backward_cost(10), (Cost{30, 120}));
}

// Kernels over both element types.
template <class T>
class Activation : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, Bf16, Fp16>;
TYPED_TEST_SUITE(Activation, ElementTypes);

Floats spread(std::string_view name) {
    Floats x = normals(kCount, name);
    for (float& value : x) value *= 4.0f;
    return x;
}

TYPED_TEST(Activation, ReluAgreesWithThePlainForm) {
    const auto x = as<TypeParam>(spread("x")), dy = as<TypeParam>(normals(kCount, "dy"));
    auto y = unwritten<TypeParam>(kCount), dx = y;
    relu_forward(x.data(), y.data(), kCount);
    relu_backward(dy.data(), y.data(), dx.data(), kCount);
    EXPECT_EQ(in_double(y), reference::relu_forward(in_double(x)));
    EXPECT_EQ(in_double(dx), reference::relu_backward(in_double(dy), in_double(y)));
}

// The square of a float or Bf16, and a product with one, is rounded once; 2x is exact.
TYPED_TEST(Activation, SquaredReluIsThePlainFormRoundedOnce) {
    const auto x = as<TypeParam>(spread("x")), dy = as<TypeParam>(normals(kCount, "dy"));
    auto y = unwritten<TypeParam>(kCount), dx = y;
    squared_relu_forward(x.data(), y.data(), kCount);
    squared_relu_backward(dy.data(), x.data(), dx.data(), kCount);
    const auto rounded = [](const Vector& exact) {
        return in_double(as<TypeParam>(Floats(exact.begin(), exact.end())));
    };
    EXPECT_EQ(in_double(y), rounded(reference::squared_relu_forward(in_double(x))));
    EXPECT_EQ(in_double(dx), rounded(reference::squared_relu_backward(in_double(dy), in_double(x))));
}

TYPED_TEST(Activation, GeluAgreesWithThePlainForm) {
    const auto x = as<TypeParam>(spread("x")), dy = as<TypeParam>(normals(kCount, "dy"));
    auto y = unwritten<TypeParam>(kCount), dx = y;
    gelu_forward(x.data(), y.data(), kCount);
    gelu_backward(dy.data(), x.data(), dx.data(), kCount);
    EXPECT_LE(relative_error(in_double(y), reference::gelu_forward(in_double(x))), kTolerance<TypeParam>);
    EXPECT_LE(relative_error(in_double(dx), reference::gelu_backward(in_double(dy), in_double(x))),
              kTolerance<TypeParam>);
}

TYPED_TEST(Activation, GatedSiluAgreesWithThePlainForm) {
    const auto gate = as<TypeParam>(spread("gate")), up = as<TypeParam>(normals(kCount, "up"));
    const auto dy = as<TypeParam>(normals(kCount, "dy"));
    auto y = unwritten<TypeParam>(kCount), dgate = y, dup = y;
    silu_mul_forward(gate.data(), up.data(), y.data(), kCount);
    silu_mul_backward(dy.data(), gate.data(), up.data(), dgate.data(), dup.data(), kCount);
    const auto expected = reference::silu_mul_backward(in_double(dy), in_double(gate), in_double(up));
    EXPECT_LE(relative_error(in_double(y), reference::silu_mul_forward(in_double(gate), in_double(up))),
              kTolerance<TypeParam>);
    EXPECT_LE(relative_error(in_double(dgate), expected.dgate), kTolerance<TypeParam>);
    EXPECT_LE(relative_error(in_double(dup), expected.dup), kTolerance<TypeParam>);

    auto in_place = dy, other = up;  // the gradients may replace dy and an input
    silu_mul_backward(in_place.data(), gate.data(), other.data(), in_place.data(), other.data(), kCount);
    EXPECT_EQ(in_place, dgate);
    EXPECT_EQ(other, dup);
}

TEST(GatedSilu, FarOutIsTheIdentityOrNothing) {
    const Floats gate = {-1e30f, -200.0f, 200.0f, 1e30f}, ones(4, 1.0f);
    Floats y(4, NAN), dgate(4, NAN), dup(4, NAN);
    silu_mul_forward(gate.data(), ones.data(), y.data(), 4);
    silu_mul_backward(ones.data(), gate.data(), ones.data(), dgate.data(), dup.data(), 4);
    for (const Floats& result : {y, dup}) {
        EXPECT_NEAR(result[0], 0.0f, 1e-30f);
        EXPECT_NEAR(result[1], 0.0f, 1e-30f);
        EXPECT_EQ(result[2], 200.0f);
        EXPECT_EQ(result[3], 1e30f);
    }
    EXPECT_NEAR(dgate[0], 0.0f, 1e-30f);
    EXPECT_NEAR(dgate[1], 0.0f, 1e-30f);
    EXPECT_EQ(dgate[2], 1.0f);
    EXPECT_EQ(dgate[3], 1.0f);
}

TEST(GatedSilu, GradientsAgreeWithFiniteDifferences) {
    const Vector gate = in_double(normals(20, "gate")), up = in_double(normals(20, "up"));
    const Vector dy = in_double(normals(20, "dy"));
    const auto plain = reference::silu_mul_backward(dy, gate, up);
    const auto loss = [&](const Vector& g, const Vector& u) {
        return dot(dy, reference::silu_mul_forward(g, u));
    };
    EXPECT_LE(
        relative_error(plain.dgate, finite_differences(gate, [&](const Vector& v) { return loss(v, up); })),
        kFiniteDifferenceTolerance);
    EXPECT_LE(
        relative_error(plain.dup, finite_differences(up, [&](const Vector& v) { return loss(gate, v); })),
        kFiniteDifferenceTolerance);
}

TEST(Gelu, FarOutIsTheIdentityOrNothing) {
    const Floats x = {-1e30f, -50.0f, 50.0f, 1e30f};
    const Floats ones(4, 1.0f);
    Floats y(4, NAN);
    Floats dx(4, NAN);
    gelu_forward(x.data(), y.data(), 4);
    gelu_backward(ones.data(), x.data(), dx.data(), 4);
    EXPECT_NEAR(y[1], 0.0f, 1e-19f);
    EXPECT_EQ(y[2], 50.0f);
    EXPECT_EQ(y[3], 1e30f);
    EXPECT_NEAR(dx[0], 0.0f, 1e-19f);
    EXPECT_NEAR(dx[1], 0.0f, 1e-19f);
    EXPECT_EQ(dx[2], 1.0f);
    EXPECT_EQ(dx[3], 1.0f);
}

TEST(Gelu, GradientAgreesWithFiniteDifferences) {
    const Vector x = in_double(normals(20, "x"));
    const Vector dy = in_double(normals(20, "dy"));
    const auto loss = [&](const Vector& v) { return dot(dy, reference::gelu_forward(v)); };
    EXPECT_LE(relative_error(reference::gelu_backward(dy, x), finite_differences(x, loss)),
              kFiniteDifferenceTolerance);
}

// A rank that computes a part must get the same bits as one that computes the whole.
TEST(Gelu, AnyCutGivesTheSameBits) {
    const Floats x = normals(100, "x");
    Floats whole(100);
    gelu_forward(x.data(), whole.data(), 100);
    for (const std::size_t cut : {1, 7, 16, 50, 99}) {
        Floats parts(100);
        gelu_forward(x.data(), parts.data(), cut);
        gelu_forward(x.data() + cut, parts.data() + cut, 100 - cut);
        EXPECT_EQ(parts, whole) << cut;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
