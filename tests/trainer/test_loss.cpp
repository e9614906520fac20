// Cross-entropy and mean squared error compared with their plain forms and finite differences.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/loss.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

// Equal logits: every class has 1/256, the loss is log 256 = 5.545…
TEST(CrossEntropy, OfAnUntrainedModelIsTheLogarithmOfTheClasses) {
    const Floats logits(3 * 256, 0.7f);
    const Tokens targets = {0, 100, 255};
    Floats probabilities(logits.size());
    double mean = NAN;
    cross_entropy_forward(logits.data(), targets.data(), probabilities.data(), &mean, 3, 256);
    EXPECT_NEAR(mean, std::log(256.0), 1e-7);
    EXPECT_FLOAT_EQ(probabilities[300], 1.0f / 256.0f);
}

TEST(CrossEntropy, AgreesWithThePlainForm) {
    constexpr int kRows = 9, kClasses = 77;
    Floats logits = normals(kRows * kClasses, "logits");
    for (float& value : logits) value = 3.0f * value + 50.0f;  // far from 0: the largest must be subtracted
    const Tokens targets = tokens(kRows, kClasses, "targets");
    Floats probabilities(logits.size(), NAN), dlogits(logits.size(), NAN);
    double mean = NAN;
    cross_entropy_forward(logits.data(), targets.data(), probabilities.data(), &mean, kRows, kClasses);
    cross_entropy_backward(probabilities.data(), targets.data(), dlogits.data(), kRows, kClasses);
    const auto expected = reference::cross_entropy_forward(in_double(logits), targets, kRows, kClasses);
    EXPECT_NEAR(mean / expected.mean, 1.0, 1e-6);
    EXPECT_LE(relative_error(probabilities, expected.probabilities), kFloatTolerance);
    EXPECT_LE(relative_error(dlogits, reference::cross_entropy_backward(expected.probabilities, targets,
                                                                        kRows, kClasses)),
              kFloatTolerance);

    Floats in_place = logits;
    double mean_in_place = NAN;
    cross_entropy_forward(in_place.data(), targets.data(), in_place.data(), &mean_in_place, kRows, kClasses);
    EXPECT_EQ(in_place, probabilities);
    EXPECT_EQ(mean_in_place, mean);
    cross_entropy_backward(in_place.data(), targets.data(), in_place.data(), kRows, kClasses);
    EXPECT_EQ(in_place, dlogits);
}

TEST(CrossEntropy, GradientAgreesWithFiniteDifferences) {
    constexpr int kRows = 3, kClasses = 5;
    const Vector logits = in_double(normals(kRows * kClasses, "logits"));
    const Tokens targets = {4, 0, 2};
    const auto loss = [&](const Vector& v) {
        return reference::cross_entropy_forward(v, targets, kRows, kClasses).mean;
    };
    const Vector probabilities =
        reference::cross_entropy_forward(logits, targets, kRows, kClasses).probabilities;
    EXPECT_LE(relative_error(reference::cross_entropy_backward(probabilities, targets, kRows, kClasses),
                             finite_differences(logits, loss)),
              kFiniteDifferenceTolerance);
}

// (1 - s) of the target's loss and s of the mean of all classes', whose gradient finite differences give.
TEST(CrossEntropy, SmoothsTheTarget) {
    constexpr int kRows = 3, kClasses = 20;
    constexpr double kSmoothing = 0.1;
    const Floats logits = normals(kRows * kClasses, "logits");
    const Tokens targets = {4, 0, 19};
    const auto smoothed = [&](const Vector& v) {
        double loss = (1 - kSmoothing) * reference::cross_entropy_forward(v, targets, kRows, kClasses).mean;
        for (int c = 0; c < kClasses; ++c) {
            const Tokens all(kRows, c);
            loss += kSmoothing / kClasses * reference::cross_entropy_forward(v, all, kRows, kClasses).mean;
        }
        return loss;
    };
    Floats probabilities(logits.size(), NAN), dlogits(logits.size(), NAN);
    double mean = NAN;
    cross_entropy_forward(logits.data(), targets.data(), probabilities.data(), &mean, kRows, kClasses, 0,
                          kSmoothing);
    cross_entropy_backward(probabilities.data(), targets.data(), dlogits.data(), kRows, kClasses, 0,
                           kSmoothing);
    EXPECT_NEAR(mean / smoothed(in_double(logits)), 1.0, 1e-6);
    EXPECT_LE(relative_error(dlogits, finite_differences(in_double(logits), smoothed)), kFloatTolerance);
}

// Rows without a target do not count: the loss and its gradient are those of the other rows.
TEST(CrossEntropy, LeavesOutRowsWithoutATarget) {
    constexpr int kRows = 5, kClasses = 40, kCounted = 2;
    const Floats logits = normals(kRows * kClasses, "logits");
    const Tokens targets = {-1, 7, -1, -1, 39};
    Floats probabilities(logits.size(), NAN), dlogits(logits.size(), NAN);
    double mean = NAN;
    cross_entropy_forward(logits.data(), targets.data(), probabilities.data(), &mean, kRows, kClasses,
                          kCounted);
    cross_entropy_backward(probabilities.data(), targets.data(), dlogits.data(), kRows, kClasses, kCounted);

    Floats some, expected(2 * kClasses, NAN);
    for (const int row : {1, 4})
        some.insert(some.end(), &logits[row * kClasses], &logits[row * kClasses] + kClasses);
    const Tokens own = {7, 39};
    double mean_of_some = NAN;
    cross_entropy_forward(some.data(), own.data(), some.data(), &mean_of_some, kCounted, kClasses);
    cross_entropy_backward(some.data(), own.data(), expected.data(), kCounted, kClasses);
    EXPECT_EQ(mean, mean_of_some);
    for (int row = 0; row < kRows; ++row) {
        for (int j = 0; j < kClasses; ++j) {
            const float wanted = row == 1 ? expected[j] : row == 4 ? expected[kClasses + j] : 0.0f;
            ASSERT_EQ(dlogits[row * kClasses + j], wanted) << row << " " << j;
        }
    }
}

// A run that diverges must show it.
TEST(CrossEntropy, NotANumberGivesNotANumber) {
    Floats logits(20, 1.0f);
    logits[13] = NAN;
    const Tokens targets = {3};
    double mean = 0.0;
    cross_entropy_forward(logits.data(), targets.data(), logits.data(), &mean, 1, 20);
    EXPECT_TRUE(std::isnan(mean));
}

// The library chooses AVX-512, AVX2 or baseline code; softmax_row in this file is compiled for the baseline.
TEST(CrossEntropy, BitsEqualThoseOfTheOldestProcessor) {
    constexpr int kRows = 5, kClasses = 259;
    const Floats logits = normals(kRows * kClasses, "logits");
    const Tokens targets(kRows, 1);
    Floats probabilities(logits.size()), expected(logits.size());
    double mean = 0.0;
    cross_entropy_forward(logits.data(), targets.data(), probabilities.data(), &mean, kRows, kClasses);
    for (int i = 0; i < kRows; ++i) {
        softmax_row(logits.data() + i * kClasses, expected.data() + i * kClasses, kClasses);
    }
    EXPECT_EQ(probabilities, expected);
}

// Differences 1, 2, 0, 3: (1 + 4 + 0 + 9) / 4 = 3.5, gradients 2 d / 4.
TEST(MeanSquaredError, OfFourElements) {
    const Floats y = {1.0f, 2.0f, 5.0f, 0.0f}, target = {0.0f, 4.0f, 5.0f, -3.0f};
    double mean = NAN;
    mse_forward(y.data(), target.data(), &mean, 4);
    EXPECT_EQ(mean, 3.5);
    Floats dy(4, NAN);
    mse_backward(y.data(), target.data(), dy.data(), 4);
    EXPECT_EQ(dy, (Floats{0.5f, -1.0f, 0.0f, 1.5f}));
}

TEST(MeanSquaredError, AgreesWithThePlainForm) {
    const Floats y = normals(10007, "y"), target = normals(10007, "target");
    double mean = NAN;
    mse_forward(y.data(), target.data(), &mean, y.size());
    EXPECT_NEAR(mean / reference::mse_forward(in_double(y), in_double(target)), 1.0, 1e-13);
    Floats dy(y.size(), NAN);
    mse_backward(y.data(), target.data(), dy.data(), y.size());
    EXPECT_LE(relative_error(dy, reference::mse_backward(in_double(y), in_double(target))), kFloatTolerance);
}

TEST(MeanSquaredError, GradientAgreesWithFiniteDifferences) {
    const Vector y = in_double(normals(12, "y")), target = in_double(normals(12, "target"));
    const auto loss = [&](const Vector& v) { return reference::mse_forward(v, target); };
    EXPECT_LE(relative_error(reference::mse_backward(y, target), finite_differences(y, loss)),
              kFiniteDifferenceTolerance);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
