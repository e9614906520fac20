// The kernels of a mixture of experts, compared with the plain definitions.
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/experts.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using testing::Floats;
using testing::normals;
using Integers = std::vector<std::int32_t>;

constexpr int kTokens = 40, kExperts = 5;

struct Chosen {
    Floats weights, probabilities;
    Integers experts;
};
Chosen choose(const Floats& logits, int k) {
    Chosen made{Floats(kTokens * static_cast<std::size_t>(k)), Floats(logits.size()),
                Integers(kTokens * static_cast<std::size_t>(k))};
    choose_experts(logits.data(), made.weights.data(), made.experts.data(), made.probabilities.data(),
                   kTokens, kExperts, k);
    return made;
}

TEST(Experts, AreChosenByProbability) {
    const Floats logits = normals(kTokens * kExperts, "logits");
    for (const int k : {1, 2, 5}) {
        const Chosen made = choose(logits, k);
        for (int t = 0; t < kTokens; ++t) {
            const float *row = &logits[static_cast<std::size_t>(t * kExperts)], *w = &made.weights[t * k];
            const std::int32_t* own = &made.experts[t * k];
            double all = 0, some = 0;
            for (int e = 0; e < kExperts; ++e) all += std::exp(double{row[e]});
            for (int j = 0; j < k; ++j) some += std::exp(double{row[own[j]]});
            for (int j = 0; j < k; ++j) {
                EXPECT_NEAR(w[j], std::exp(double{row[own[j]]}) / (k > 1 ? some : all), 1e-6);
                EXPECT_TRUE(j == 0 || row[own[j - 1]] >= row[own[j]]);
            }
            int larger = 0;
            for (int e = 0; e < kExperts; ++e) larger += row[e] > row[own[k - 1]] ? 1 : 0;
            EXPECT_EQ(larger, k - 1);
        }
    }
}

TEST(Experts, WithEqualProbabilitiesAreTakenInTheirOrder) {
    const Chosen made = choose(Floats(kTokens * kExperts, 0.5F), 3);
    EXPECT_EQ(Integers(made.experts.begin(), made.experts.begin() + 3), (Integers{0, 1, 2}));
}

// Of the sum of weights * dweights and of balance * sum of shares * probabilities, by differences.
TEST(Experts, HaveTheGradientOfTheirWeightsAndOfTheBalance) {
    const Floats logits = normals(kTokens * kExperts, "logits"), shares = {3, 1, 4, 1, 5};
    for (const int k : {1, 2, 5}) {
        const Floats dweights = normals(kTokens * static_cast<std::size_t>(k), "dweights");
        for (const float balance : {0.0F, 0.25F}) {
            const auto value = [&](const Floats& at) {
                const Chosen made = choose(at, k);
                double sum = 0;
                for (std::size_t i = 0; i < dweights.size(); ++i)
                    sum += double{made.weights[i]} * dweights[i];
                for (std::size_t i = 0; i < at.size(); ++i)
                    sum += double{balance} * made.probabilities[i] * shares[i % kExperts];
                return sum;
            };
            const Chosen made = choose(logits, k);
            Floats dlogits(logits.size());
            choose_experts_backward(dweights.data(), made.experts.data(), made.probabilities.data(),
                                    balance > 0 ? shares.data() : nullptr, balance, dlogits.data(), kTokens,
                                    kExperts, k);
            for (std::size_t i = 0; i < logits.size(); i += 7) {
                Floats above = logits, below = logits;
                above[i] += 1e-3F;
                below[i] -= 1e-3F;
                if (choose(above, k).experts != made.experts || choose(below, k).experts != made.experts)
                    continue;
                EXPECT_NEAR(dlogits[i], (value(above) - value(below)) / 2e-3, 2e-3) << k << ", logit " << i;
            }
        }
    }
}

TEST(Experts, GetRowsInTheOrderOfTheTokensUpToTheirCapacity) {
    const Integers chosen = {2, 0, 2, 2, 0, 1};
    Integers places(6), counts(4);
    Floats shares(4);
    route(chosen.data(), places.data(), counts.data(), shares.data(), 6, 4, 0);
    EXPECT_EQ(places, (Integers{3, 0, 4, 5, 1, 2}));
    EXPECT_EQ(counts, (Integers{2, 1, 3, 0}));
    EXPECT_EQ(shares, (Floats{2, 1, 3, 0}));
    route(chosen.data(), places.data(), counts.data(), shares.data(), 6, 4, 2);
    EXPECT_EQ(places, (Integers{3, 0, 4, -1, 1, 2}));
    EXPECT_EQ(counts, (Integers{2, 1, 2, 0}));
    EXPECT_EQ(shares, (Floats{2, 1, 3, 0}));
}

// Three tokens of two choices, of which one has no row; a buffer with more room than rows.
TEST(Experts, RowsGoThereAndBack) {
    const Integers places = {4, 0, 1, -1, 3, 2};
    const Floats x = normals(12, "x"), weights = normals(6, "weights"), kept = normals(28, "kept");
    Floats rows(28, 9), slopes(6), y(12);
    scatter_rows<float>(x.data(), nullptr, nullptr, places.data(), rows.data(), nullptr, 6, 2, 4);
    for (std::size_t c = 0; c < 6; ++c) {
        for (std::size_t i = 0; i < 4 && places[c] >= 0; ++i)
            EXPECT_EQ(rows[static_cast<std::size_t>(places[c]) * 4 + i], x[c / 2 * 4 + i]);
    }
    EXPECT_EQ(Floats(rows.begin() + 20, rows.end()), Floats(8, 9));
    gather_rows<float>(rows.data(), weights.data(), places.data(), y.data(), 6, 2, 4);
    for (std::size_t t = 0; t < 3; ++t) {
        const float sum = weights[2 * t] + (t == 1 ? 0 : weights[2 * t + 1]);
        for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[t * 4 + i], sum * x[t * 4 + i], 1e-6);
    }
    scatter_rows<float>(x.data(), kept.data(), weights.data(), places.data(), rows.data(), slopes.data(), 6,
                        2, 4);
    for (std::size_t c = 0; c < 6; ++c) {
        double dot = 0;
        for (std::size_t i = 0; i < 4 && places[c] >= 0; ++i) {
            const std::size_t at = static_cast<std::size_t>(places[c]) * 4 + i;
            dot += double{x[c / 2 * 4 + i]} * kept[at];
            EXPECT_EQ(rows[at], x[c / 2 * 4 + i] * weights[c]);
        }
        EXPECT_NEAR(slopes[c], dot, 1e-5);
    }
}

// Groups of 3, 0, 2 and 4 rows, of experts 0, 1, 0, 1; one more row has no group.
TEST(Experts, MultiplyTheirOwnRows) {
    const Integers counts = {3, 0, 2, 4};
    constexpr int kIn = 6, kOut = 5, kRows = 10;
    const std::size_t expert_of[] = {0, 0, 0, 0, 0, 1, 1, 1, 1};
    const Floats x = normals(kRows * kIn, "x"), w = normals(2 * kIn * kOut, "w"),
                 dy = normals(kRows * kOut, "dy");
    Floats y(kRows * kOut, 9), dx(kRows * kIn, 9), dw(w.size(), 9);
    grouped_linear_forward<float>(x.data(), w.data(), y.data(), counts, kIn, kOut, 2);
    grouped_linear_backward_input<float>(dy.data(), w.data(), dx.data(), counts, kIn, kOut, 2);
    grouped_linear_backward_weight<float>(dy.data(), x.data(), dw.data(), counts, kIn, kOut, 2);
    std::vector<double> sums(w.size(), 0.0);
    for (std::size_t r = 0; r < 9; ++r) {
        std::vector<double> row(kIn, 0.0);
        for (std::size_t o = 0; o < kOut; ++o) {
            double sum = 0;
            for (std::size_t i = 0; i < kIn; ++i) {
                const std::size_t at = (expert_of[r] * kOut + o) * kIn + i;
                sum += double{x[r * kIn + i]} * w[at];
                row[i] += double{dy[r * kOut + o]} * w[at];
                sums[at] += double{dy[r * kOut + o]} * x[r * kIn + i];
            }
            EXPECT_NEAR(y[r * kOut + o], sum, 1e-5);
        }
        for (std::size_t i = 0; i < kIn; ++i) EXPECT_NEAR(dx[r * kIn + i], row[i], 1e-5);
    }
    for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(dw[i], sums[i], 1e-5);
    EXPECT_EQ(Floats(y.end() - kOut, y.end()), Floats(kOut, 9));
    EXPECT_EQ(Floats(dx.end() - kIn, dx.end()), Floats(kIn, 9));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
