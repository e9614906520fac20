// Optimizer steps and element-wise sums: worked examples, the plain form, and bits that no cut changes.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/optimizer.h"

namespace shardscope::trainer {
namespace {

using namespace testing;

TEST(Sgd, StepsAgainstTheGradient) {
    Floats param = {1.0f, -2.0f};
    const Floats grad = {0.5f, 0.25f};
    kernels::sgd(param.data(), grad.data(), nullptr, 2, 0.5, 0.0, false, 0.0);
    EXPECT_EQ(param, (Floats{0.75f, -2.125f}));  // 1 - 0.5*0.5, -2 - 0.5*0.25
}

TEST(Sgd, WeightDecayAddsTheParameterToTheGradient) {
    Floats param = {4.0f};
    const Floats grad = {1.0f};
    kernels::sgd(param.data(), grad.data(), nullptr, 1, 0.5, 0.0, false, 0.25);
    EXPECT_EQ(param[0], 3.0f);  // 4 - 0.5*(1 + 0.25*4)
}

// Two steps with gradient 1, momentum 1/2: buffer 1, then 1.5; the parameter falls by 1 and 1.5, times lr 1.
TEST(Sgd, MomentumGathersSpeed) {
    Floats param = {0.0f};
    const Floats grad = {1.0f};
    Floats buffer = {0.0f};
    kernels::sgd(param.data(), grad.data(), buffer.data(), 1, 1.0, 0.5, false, 0.0);
    EXPECT_EQ(param[0], -1.0f);
    kernels::sgd(param.data(), grad.data(), buffer.data(), 1, 1.0, 0.5, false, 0.0);
    EXPECT_EQ(param[0], -2.5f);
    EXPECT_EQ(buffer[0], 1.5f);
}

// The first step of AdamW is lr * sign(gradient) (mhat = g, vhat = g^2), after the decay by 1 - lr *
// weight_decay.
TEST(AdamW, FirstStepIsTheLearningRate) {
    Floats param = {1.0f, 1.0f};
    const Floats grad = {3.0f, -0.001f};
    Floats m(2, 0.0f), v(2, 0.0f);
    kernels::adamw(param.data(), grad.data(), m.data(), v.data(), 2, {0.1, 0.9, 0.999, 1e-8, 0.5}, 1);
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
            kernels::sgd(param.data(), grad.data(), buffer.data(), kCount, 0.1, 0.9, nesterov, 0.01);
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
        kernels::adamw(param.data(), grad.data(), m.data(), v.data(), kCount, {0.01, 0.9, 0.95, 1e-8, 0.1},
                       step);
        reference::adamw(expected, in_double(grad), plain_m, plain_v, step, {0.01, 0.9, 0.95, 1e-8, 0.1});
    }
    EXPECT_LE(relative_error(param, expected), kFloatTolerance);
    EXPECT_LE(relative_error(m, plain_m), kFloatTolerance);
    EXPECT_LE(relative_error(v, plain_v), kFloatTolerance);
}

// Ranks step their shards; whoever holds everything must get the same bits.
TEST(AdamW, ShardsSteppedAloneHaveTheBitsOfTheWhole) {
    const Floats start = normals(kCount, "param"), grad = normals(kCount, "grad");
    Floats whole = start, m(kCount, 0.0f), v(kCount, 0.0f);
    kernels::adamw(whole.data(), grad.data(), m.data(), v.data(), kCount, {0.01, 0.9, 0.999, 1e-8, 0.01}, 1);
    Floats parts = start, m2(kCount, 0.0f), v2(kCount, 0.0f);
    for (std::size_t first = 0; first < kCount; first += 251) {
        const std::size_t n = std::min<std::size_t>(251, kCount - first);
        kernels::adamw(&parts[first], &grad[first], &m2[first], &v2[first], n, {0.01, 0.9, 0.999, 1e-8, 0.01},
                       1);
    }
    EXPECT_EQ(parts, whole);
}

TEST(SumRanks, AddsInRankOrderThenScales) {
    // In fp32 1e8 + 1 is 1e8: rank order gives 0 here, the order 0, 2, 1 would give 1.
    const Floats rank0 = {1e8f, 3.0f}, rank1 = {1.0f, 4.0f}, rank2 = {-1e8f, 5.0f};
    const float* const inputs[] = {rank0.data(), rank1.data(), rank2.data()};
    Floats out(2, NAN);
    kernels::sum_ranks(inputs, 3, out.data(), 2, 0.5f);
    EXPECT_EQ(out, (Floats{0.0f, 6.0f}));
}

TEST(SumRanks, AnyCutAndAnyOutputGiveTheSameBits) {
    constexpr int kRanks = 4;
    std::vector<Floats> ranks;
    for (int r = 0; r < kRanks; ++r) ranks.push_back(normals(1100, std::to_string(r)));
    const auto inputs_at = [&](std::size_t first) {
        std::vector<const float*> inputs;
        for (const Floats& rank : ranks) inputs.push_back(rank.data() + first);
        return inputs;
    };
    Floats whole(1100);
    kernels::sum_ranks(inputs_at(0).data(), kRanks, whole.data(), 1100, 1.0f / kRanks);
    for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(whole[i], (((ranks[0][i] + ranks[1][i]) + ranks[2][i]) + ranks[3][i]) * 0.25f);
    }
    Floats parts(1100);
    kernels::sum_ranks(inputs_at(0).data(), kRanks, parts.data(), 37, 1.0f / kRanks);
    kernels::sum_ranks(inputs_at(37).data(), kRanks, parts.data() + 37, 1063, 1.0f / kRanks);
    EXPECT_EQ(parts, whole);
    kernels::sum_ranks(inputs_at(0).data(), kRanks, ranks[2].data(), 1100, 1.0f / kRanks);
    EXPECT_EQ(ranks[2], whole);
}

TEST(Elementwise, AddAccumulateScaleCopy) {
    const Floats a = {1, 2, 3}, b = {10, 20, 30};
    Floats y(3, NAN);
    kernels::add(a.data(), b.data(), y.data(), 3);
    EXPECT_EQ(y, (Floats{11, 22, 33}));
    kernels::accumulate(a.data(), y.data(), 3);
    EXPECT_EQ(y, (Floats{12, 24, 36}));
    kernels::scale(y.data(), 0.5f, 3);
    EXPECT_EQ(y, (Floats{6, 12, 18}));
    kernels::copy(a.data(), y.data(), 3);
    EXPECT_EQ(y, a);
}

}  // namespace
}  // namespace shardscope::trainer
