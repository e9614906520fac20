// Layer norm compared with its plain form, its gradients with finite differences.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/layer_norm.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

constexpr double kEps = 1e-5;

// (1, 3): mean 2, deviation 1, so xhat is (-1, 1); times gamma (2, 3) plus beta (10, 20).
TEST(LayerNorm, NormalizesARow) {
    const Floats x = {1.0f, 3.0f}, gamma = {2.0f, 3.0f}, beta = {10.0f, 20.0f};
    Floats y(2);
    float mean;
    float rstd;
    layer_norm_forward(x.data(), gamma.data(), beta.data(), y.data(), &mean, &rstd, 1, 2, 0.0f);
    EXPECT_EQ(y, (Floats{8.0f, 23.0f}));
    EXPECT_EQ(mean, 2.0f);
    EXPECT_EQ(rstd, 1.0f);
}

struct Shape {
    int rows, cols;
};

class LayerNormShapes : public ::testing::TestWithParam<Shape> {};

template <class T>
void expect_the_plain_form(int rows, int cols) {
    const std::size_t n = static_cast<std::size_t>(rows) * cols;
    Floats away = normals(n, "x");
    for (float& value : away) value = 2.0f * value + 3.0f;
    const auto x = as<T>(away), dy = as<T>(normals(n, "dy"));
    const auto gamma = as<T>(normals(cols, "gamma")), beta = as<T>(normals(cols, "beta"));
    auto y = unwritten<T>(n), dx = y, dgamma = unwritten<T>(cols), dbeta = dgamma;
    Floats mean(rows, NAN), rstd(rows, NAN);
    layer_norm_forward(x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data(), rows, cols,
                       static_cast<float>(kEps));
    layer_norm_backward_input(dy.data(), x.data(), gamma.data(), mean.data(), rstd.data(), dx.data(), rows,
                              cols);
    layer_norm_backward_parameters(dy.data(), x.data(), mean.data(), rstd.data(), dgamma.data(), dbeta.data(),
                                   rows, cols);
    EXPECT_LE(relative_error(in_double(y), reference::layer_norm_forward(in_double(x), in_double(gamma),
                                                                         in_double(beta), rows, cols, kEps)),
              kTolerance<T>);
    const auto expected =
        reference::layer_norm_backward(in_double(dy), in_double(x), in_double(gamma), rows, cols, kEps);
    EXPECT_LE(relative_error(in_double(dx), expected.dx), kTolerance<T>);
    EXPECT_LE(relative_error(in_double(dgamma), expected.dgamma), kTolerance<T>);
    EXPECT_LE(relative_error(in_double(dbeta), expected.dbeta), kTolerance<T>);
}

TEST_P(LayerNormShapes, AgreesWithThePlainForm) {
    expect_the_plain_form<float>(GetParam().rows, GetParam().cols);
}

TEST_P(LayerNormShapes, AgreesWithThePlainFormInNarrowTypes) {
    expect_the_plain_form<Bf16>(GetParam().rows, GetParam().cols);
    expect_the_plain_form<Fp16>(GetParam().rows, GetParam().cols);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNormShapes,
                         ::testing::Values(Shape{1, 16}, Shape{5, 33}, Shape{130, 20}, Shape{70, 300}));

TEST(LayerNormGradients, AgreeWithFiniteDifferences) {
    constexpr int kRows = 3, kCols = 6;
    const Vector x = in_double(normals(kRows * kCols, "x")), dy = in_double(normals(kRows * kCols, "dy"));
    const Vector gamma = in_double(normals(kCols, "gamma")), beta = in_double(normals(kCols, "beta"));
    const auto loss = [&](const Vector& x_, const Vector& gamma_, const Vector& beta_) {
        return dot(dy, reference::layer_norm_forward(x_, gamma_, beta_, kRows, kCols, kEps));
    };
    const auto gradients = reference::layer_norm_backward(dy, x, gamma, kRows, kCols, kEps);
    EXPECT_LE(relative_error(gradients.dx,
                             finite_differences(x, [&](const Vector& v) { return loss(v, gamma, beta); })),
              kFiniteDifferenceTolerance);
    EXPECT_LE(relative_error(gradients.dgamma,
                             finite_differences(gamma, [&](const Vector& v) { return loss(x, v, beta); })),
              kFiniteDifferenceTolerance);
    EXPECT_LE(relative_error(gradients.dbeta,
                             finite_differences(beta, [&](const Vector& v) { return loss(x, gamma, v); })),
              kFiniteDifferenceTolerance);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
