// Root-mean-square norm compared with its plain form, its gradients with finite differences.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/rms_norm.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

constexpr double kEps = 1e-5;

// (3, 4): the mean square is 12.5, so with gamma (1, 2) and no eps the row is (3, 8) / sqrt(12.5).
TEST(RmsNorm, ScalesARowByItsRootMeanSquare) {
    const Floats x = {3.0f, 4.0f}, gamma = {1.0f, 2.0f};
    Floats y(2);
    float rstd;
    rms_norm_forward(x.data(), gamma.data(), y.data(), &rstd, 1, 2, 0.0f);
    EXPECT_FLOAT_EQ(rstd, 1.0f / std::sqrt(12.5f));
    EXPECT_FLOAT_EQ(y[0], 3.0f / std::sqrt(12.5f));
    EXPECT_FLOAT_EQ(y[1], 8.0f / std::sqrt(12.5f));
}

struct Shape {
    int rows, cols;
};

class RmsNormShapes : public ::testing::TestWithParam<Shape> {};

template <class T>
void expect_the_plain_form(int rows, int cols) {
    const std::size_t n = static_cast<std::size_t>(rows) * cols;
    const auto x = as<T>(normals(n, "x")), dy = as<T>(normals(n, "dy")),
               gamma = as<T>(normals(cols, "gamma"));
    auto y = unwritten<T>(n), dx = y, dgamma = unwritten<T>(cols);
    Floats rstd(rows, NAN);
    rms_norm_forward(x.data(), gamma.data(), y.data(), rstd.data(), rows, cols, static_cast<float>(kEps));
    rms_norm_backward_input(dy.data(), x.data(), gamma.data(), rstd.data(), dx.data(), rows, cols);
    rms_norm_backward_parameters(dy.data(), x.data(), rstd.data(), dgamma.data(), rows, cols);
    const auto expected =
        reference::rms_norm_backward(in_double(dy), in_double(x), in_double(gamma), rows, cols, kEps);
    EXPECT_LE(relative_error(in_double(y),
                             reference::rms_norm_forward(in_double(x), in_double(gamma), rows, cols, kEps)),
              kTolerance<T>);
    EXPECT_LE(relative_error(in_double(dx), expected.dx), kTolerance<T>);
    EXPECT_LE(relative_error(in_double(dgamma), expected.dgamma), kTolerance<T>);
}

TEST_P(RmsNormShapes, AgreesWithThePlainForm) {
    expect_the_plain_form<float>(GetParam().rows, GetParam().cols);
}

TEST_P(RmsNormShapes, AgreesWithThePlainFormInNarrowTypes) {
    expect_the_plain_form<Bf16>(GetParam().rows, GetParam().cols);
    expect_the_plain_form<Fp16>(GetParam().rows, GetParam().cols);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RmsNormShapes,
                         ::testing::Values(Shape{1, 16}, Shape{5, 33}, Shape{130, 20}, Shape{70, 300}));

TEST(RmsNormGradients, AgreeWithFiniteDifferences) {
    constexpr int kRows = 3, kCols = 6;
    const Vector x = in_double(normals(kRows * kCols, "x")), dy = in_double(normals(kRows * kCols, "dy"));
    const Vector gamma = in_double(normals(kCols, "gamma"));
    const auto loss = [&](const Vector& x_, const Vector& gamma_) {
        return dot(dy, reference::rms_norm_forward(x_, gamma_, kRows, kCols, kEps));
    };
    const auto gradients = reference::rms_norm_backward(dy, x, gamma, kRows, kCols, kEps);
    EXPECT_LE(
        relative_error(gradients.dx, finite_differences(x, [&](const Vector& v) { return loss(v, gamma); })),
        kFiniteDifferenceTolerance);
    EXPECT_LE(relative_error(gradients.dgamma,
                             finite_differences(gamma, [&](const Vector& v) { return loss(x, v); })),
              kFiniteDifferenceTolerance);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
