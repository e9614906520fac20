// Optimizer steps: worked examples, the plain form, and bits that do not depend on the cut.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/optimizer.h"
#include "trainer/kernels/reductions.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

TEST(Sgd, StepsAgainstTheGradient) {
    Floats param = {1.0f, -2.0f};
    const Floats grad = {0.5f, 0.25f};
    sgd(param.data(), grad.data(), nullptr, 2, 0.5, 0.0, false, 0.0);
    EXPECT_EQ(param, (Floats{0.75f, -2.125f}));  // 1 - 0.5*0.5, -2 - 0.5*0.25
}

TEST(Sgd, WeightDecayAddsTheParameterToTheGradient) {
    Floats param = {4.0f};
    const Floats grad = {1.0f};
    sgd(param.data(), grad.data(), nullptr, 1, 0.5, 0.0, false, 0.25);
    EXPECT_EQ(param[0], 3.0f);  // 4 - 0.5*(1 + 0.25*4)
}

// Two steps with gradient 1, momentum 1/2: buffer 1, then 1.5; the parameter falls by 1 and 1.5, times lr 1.
TEST(Sgd, MomentumGathersSpeed) {
    Floats param = {0.0f};
    const Floats grad = {1.0f};
    Floats buffer = {0.0f};
    sgd(param.data(), grad.data(), buffer.data(), 1, 1.0, 0.5, false, 0.0);
    EXPECT_EQ(param[0], -1.0f);
    sgd(param.data(), grad.data(), buffer.data(), 1, 1.0, 0.5, false, 0.0);
    EXPECT_EQ(param[0], -2.5f);
    EXPECT_EQ(buffer[0], 1.5f);
}

// The first step of AdamW is lr * sign(gradient) (mhat = g, vhat = g^2), after the decay by 1 - lr *
// weight_decay.
TEST(AdamW, FirstStepIsTheLearningRate) {
    Floats param = {1.0f, 1.0f};
    const Floats grad = {3.0f, -0.001f};
    Floats m(2, 0.0f), v(2, 0.0f);
    adamw(param.data(), grad.data(), m.data(), v.data(), 2, {0.1, 0.9, 0.999, 1e-8, 0.5}, 1);
    EXPECT_NEAR(param[0], 0.95 - 0.1, 1e-6);
    EXPECT_NEAR(param[1], 0.95 + 0.1, 1e-5);
}

constexpr std::size_t kCount = 1003;
constexpr int kSteps = 5;

TEST(Sgd, AgreesWithThePlainFormOverSteps) {
    for (const bool nesterov : {false, true}) {
        Floats param = normals(kCount, "param"), buffer(kCount, 0.0f);
        Vector expected = in_double(param), plain_buffer(kCount);
        for (int step = 1; step <= kSteps; ++step) {
            const Floats grad = normals(kCount, std::to_string(step));
            sgd(param.data(), grad.data(), buffer.data(), kCount, 0.1, 0.9, nesterov, 0.01);
            reference::sgd(expected, in_double(grad), plain_buffer, {0.1, 0.9, nesterov, 0.01});
        }
        EXPECT_LE(relative_error(param, expected), kFloatTolerance);
        EXPECT_LE(relative_error(buffer, plain_buffer), kFloatTolerance);
    }
}

TEST(AdamW, AgreesWithThePlainFormOverSteps) {
    Floats param = normals(kCount, "param"), m(kCount, 0.0f), v(kCount, 0.0f);
    Vector expected = in_double(param), plain_m(kCount), plain_v(kCount);
    for (int step = 1; step <= kSteps; ++step) {
        const Floats grad = normals(kCount, std::to_string(step));
        adamw(param.data(), grad.data(), m.data(), v.data(), kCount, {0.01, 0.9, 0.95, 1e-8, 0.1}, step);
        reference::adamw(expected, in_double(grad), plain_m, plain_v, step, {0.01, 0.9, 0.95, 1e-8, 0.1});
    }
    EXPECT_LE(relative_error(param, expected), kFloatTolerance);
    EXPECT_LE(relative_error(m, plain_m), kFloatTolerance);
    EXPECT_LE(relative_error(v, plain_v), kFloatTolerance);
}

// Ranks update their shards; a rank that holds everything must get the same bits.
TEST(AdamW, ShardsSteppedAloneHaveTheBitsOfTheWhole) {
    const Floats start = normals(kCount, "param"), grad = normals(kCount, "grad");
    Floats whole = start, m(kCount, 0.0f), v(kCount, 0.0f);
    adamw(whole.data(), grad.data(), m.data(), v.data(), kCount, {0.01, 0.9, 0.999, 1e-8, 0.01}, 1);
    Floats parts = start, m2(kCount, 0.0f), v2(kCount, 0.0f);
    for (std::size_t first = 0; first < kCount; first += 251) {
        const std::size_t n = std::min<std::size_t>(251, kCount - first);
        adamw(&parts[first], &grad[first], &m2[first], &v2[first], n, {0.01, 0.9, 0.999, 1e-8, 0.01}, 1);
    }
    EXPECT_EQ(parts, whole);
}

// Adam adds the decay to the gradient: with g = 0 and weight_decay 1 it gets a gradient of 2, and its first
// step is the learning rate; AdamW would subtract lr * 2.
TEST(Adam, WeightDecayIsAddedToTheGradient) {
    Floats param = {2.0f};
    const Floats grad = {0.0f};
    Floats m(1, 0.0f), v(1, 0.0f);
    adam(param.data(), grad.data(), m.data(), v.data(), 1, {0.5, 0.9, 0.999, 1e-8, 1.0}, 1);
    EXPECT_NEAR(param[0], 1.5f, 1e-6f);
    EXPECT_NEAR(m[0], 0.2f, 1e-6f);  // (1 - 0.9) * 2
}

TEST(Adam, AgreesWithThePlainFormOverSteps) {
    Floats param = normals(kCount, "param"), m(kCount, 0.0f), v(kCount, 0.0f);
    Vector expected = in_double(param), plain_m(kCount), plain_v(kCount);
    for (int step = 1; step <= kSteps; ++step) {
        const Floats grad = normals(kCount, std::to_string(step));
        adam(param.data(), grad.data(), m.data(), v.data(), kCount, {0.01, 0.9, 0.95, 1e-8, 0.1}, step);
        reference::adam(expected, in_double(grad), plain_m, plain_v, step, {0.01, 0.9, 0.95, 1e-8, 0.1});
    }
    EXPECT_LE(relative_error(param, expected), kFloatTolerance);
    EXPECT_LE(relative_error(m, plain_m), kFloatTolerance);
    EXPECT_LE(relative_error(v, plain_v), kFloatTolerance);
}

// |param| = 5, |grad| = 10: 0.1 * 5 / (10 + 0.5 * 5) = 0.04.
TEST(Lars, RateIsTheTrustedShareOfTheNorms) {
    EXPECT_FLOAT_EQ(lars_rate(25.0, 100.0, 0.1, 0.5), 0.04f);
    EXPECT_EQ(lars_rate(0.0, 100.0, 0.1, 0.5), 1.0f);
    EXPECT_EQ(lars_rate(25.0, 0.0, 0.1, 0.5), 1.0f);
}

TEST(Lars, AtRateOneIsSgd) {
    Floats one = normals(kCount, "param"), other = one, buffer(kCount, 0.0f), other_buffer = buffer;
    const Floats grad = normals(kCount, "grad");
    lars(one.data(), grad.data(), buffer.data(), kCount, 0.1, 0.9, true, 0.01, 1.0f);
    sgd(other.data(), grad.data(), other_buffer.data(), kCount, 0.1, 0.9, true, 0.01);
    EXPECT_EQ(one, other);
    EXPECT_EQ(buffer, other_buffer);
}

TEST(Lars, AgreesWithThePlainFormOverSteps) {
    for (const bool nesterov : {false, true}) {
        Floats param = normals(kCount, "param"), buffer(kCount, 0.0f);
        Vector expected = in_double(param), plain_buffer(kCount);
        for (int step = 1; step <= kSteps; ++step) {
            const Floats grad = normals(kCount, std::to_string(step));
            const float rate = lars_rate(sum_of_squares(param.data(), kCount),
                                         sum_of_squares(grad.data(), kCount), 0.02, 0.01);
            lars(param.data(), grad.data(), buffer.data(), kCount, 0.5, 0.9, nesterov, 0.01, rate);
            reference::lars(expected, in_double(grad), plain_buffer, 0.02, {0.5, 0.9, nesterov, 0.01});
        }
        EXPECT_LE(relative_error(param, expected), kFloatTolerance);
        EXPECT_LE(relative_error(buffer, plain_buffer), kFloatTolerance);
    }
}

TEST(Lamb, RatioIsThatOfTheNorms) {
    EXPECT_EQ(lamb_ratio(36.0, 9.0), 2.0f);
    EXPECT_EQ(lamb_ratio(0.0, 9.0), 1.0f);
    EXPECT_EQ(lamb_ratio(36.0, 0.0), 1.0f);
}

TEST(Lamb, AgreesWithThePlainFormOverSteps) {
    const AdamOptions options{0.01, 0.9, 0.95, 1e-6, 0.1};
    Floats param = normals(kCount, "param"), m(kCount, 0.0f), v(kCount, 0.0f);
    Vector expected = in_double(param), plain_m(kCount), plain_v(kCount);
    for (int step = 1; step <= kSteps; ++step) {
        const Floats grad = normals(kCount, std::to_string(step));
        Floats update = grad;
        lamb_update(update.data(), param.data(), m.data(), v.data(), kCount, options, step);
        const float ratio =
            lamb_ratio(sum_of_squares(param.data(), kCount), sum_of_squares(update.data(), kCount));
        lamb(param.data(), update.data(), kCount, options.lr, ratio);
        reference::lamb(expected, in_double(grad), plain_m, plain_v, step, {0.01, 0.9, 0.95, 1e-6, 0.1});
    }
    EXPECT_LE(relative_error(param, expected), kFloatTolerance);
    EXPECT_LE(relative_error(m, plain_m), kFloatTolerance);
    EXPECT_LE(relative_error(v, plain_v), kFloatTolerance);
}

// |grad| = 5: the first step goes along the gradient by the learning rate, whatever the gradient's size.
TEST(NovoGrad, FirstStepHasTheLengthOfTheLearningRate) {
    for (const float scale : {1.0f, 1000.0f}) {
        Floats param = {0.0f, 0.0f}, m(2, 0.0f);
        const Floats grad = {3.0f * scale, 4.0f * scale};
        const float moment = novograd_moment(7.0f, sum_of_squares(grad.data(), 2), 0.98, 1);
        EXPECT_EQ(moment, 25.0f * scale * scale);
        novograd(param.data(), grad.data(), m.data(), moment, 2, {0.5, 0.95, 0.98, 1e-8, 0.0});
        EXPECT_FLOAT_EQ(param[0], -0.3f);
        EXPECT_FLOAT_EQ(param[1], -0.4f);
    }
}

// A parameter whose gradients are 0 stays, but for its decay: m = 0.5 * 4.
TEST(NovoGrad, AGradientOfZeroLeavesTheDecay) {
    Floats param = {4.0f}, m = {0.0f};
    const Floats grad = {0.0f};
    novograd(param.data(), grad.data(), m.data(), novograd_moment(0.0f, 0.0, 0.98, 1), 1,
             {0.25, 0.95, 0.98, 1e-8, 0.5});
    EXPECT_EQ(param[0], 3.5f);
}

TEST(NovoGrad, AgreesWithThePlainFormOverSteps) {
    const AdamOptions options{0.01, 0.95, 0.9, 1e-8, 0.1};
    Floats param = normals(kCount, "param"), m(kCount, 0.0f);
    Vector expected = in_double(param), plain_m(kCount);
    float moment = 0;
    double plain_moment = 0;
    for (int step = 1; step <= kSteps; ++step) {
        const Floats grad = normals(kCount, std::to_string(step));
        moment = novograd_moment(moment, sum_of_squares(grad.data(), kCount), options.beta2, step);
        novograd(param.data(), grad.data(), m.data(), moment, kCount, options);
        reference::novograd(expected, in_double(grad), plain_m, plain_moment, step,
                            {0.01, 0.95, 0.9, 1e-8, 0.1});
    }
    EXPECT_LE(relative_error(param, expected), kFloatTolerance);
    EXPECT_LE(relative_error(m, plain_m), kFloatTolerance);
    EXPECT_NEAR(moment / plain_moment, 1, kFloatTolerance);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
