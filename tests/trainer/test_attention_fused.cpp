// Fused attention compared with the plain form: the same output, and the same gradient without the
// probabilities.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/attention_fused.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

std::size_t elements(const AttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * s.context * s.width;
}
std::size_t qkv_elements(const AttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * s.context * s.row();
}
std::size_t rows(const AttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * s.heads * s.context;
}

class FusedAttention : public ::testing::TestWithParam<AttentionShape> {};

// Contexts of one position, within a tile of 64 rows and 128 columns, at its edges, and of several tiles;
// keys for every query head, for every other one, for every third, and one for all. The last shapes are
// bidirectional.
INSTANTIATE_TEST_SUITE_P(Shapes, FusedAttention,
                         ::testing::Values(AttentionShape{1, 1, 4, 1, 1}, AttentionShape{2, 5, 6, 2, 2},
                                           AttentionShape{1, 64, 8, 2, 2}, AttentionShape{2, 65, 12, 3, 3},
                                           AttentionShape{1, 128, 16, 4, 4}, AttentionShape{1, 129, 16, 4, 2},
                                           AttentionShape{2, 300, 24, 3, 1}, AttentionShape{1, 9, 18, 6, 2},
                                           AttentionShape{1, 1, 4, 1, 1, false},
                                           AttentionShape{2, 65, 12, 3, 3, false},
                                           AttentionShape{1, 128, 16, 4, 4, false},
                                           AttentionShape{2, 300, 24, 3, 1, false}));

template <class T>
void expect_the_plain_form(const AttentionShape& s) {
    const auto qkv = as<T>(normals(qkv_elements(s), "qkv")), dout = as<T>(normals(elements(s), "dout"));
    auto out = unwritten<T>(elements(s)), dqkv = unwritten<T>(qkv_elements(s));
    Floats lse(rows(s), NAN), delta(rows(s), NAN);
    fused_attention_forward(qkv.data(), out.data(), lse.data(), s);
    fused_attention_backward(dout.data(), qkv.data(), out.data(), lse.data(), dqkv.data(), delta.data(), s);

    const Vector wide = in_double(qkv);
    const auto plain =
        reference::attention_forward(wide, s.batch, s.context, s.width, s.heads, s.kv_heads, s.causal);
    EXPECT_LE(relative_error(in_double(out), plain.out), kTolerance<T>);
    // The delta is made of the rounded output, so a Bf16 gradient includes that rounding, too.
    EXPECT_LE(relative_error(in_double(dqkv), reference::attention_backward(
                                                  in_double(dout), wide, plain.probabilities, s.batch,
                                                  s.context, s.width, s.heads, s.kv_heads, s.causal)),
              2 * kTolerance<T>);
}

TEST_P(FusedAttention, AgreesWithThePlainForm) {
    expect_the_plain_form<float>(GetParam());
}

TEST_P(FusedAttention, AgreesWithThePlainFormInNarrowTypes) {
    expect_the_plain_form<Bf16>(GetParam());
    expect_the_plain_form<Fp16>(GetParam());
}

// If all scores of a row are equal, lse = score + log(number of attended keys): here q = 0, so the score is
// 0.
TEST_P(FusedAttention, KeepsTheLogarithmOfTheSum) {
    const AttentionShape s = GetParam();
    Floats qkv = normals(qkv_elements(s), "qkv"), out(elements(s)), lse(rows(s), NAN);
    for (std::size_t i = 0; i < qkv.size(); ++i) {
        if (i % static_cast<std::size_t>(s.row()) < static_cast<std::size_t>(s.width)) qkv[i] = 0.0f;
    }
    fused_attention_forward(qkv.data(), out.data(), lse.data(), s);
    for (std::size_t row = 0; row < lse.size(); ++row) {
        const auto context = static_cast<std::size_t>(s.context);
        const auto seen = static_cast<float>(s.causal ? row % context + 1 : context);
        EXPECT_NEAR(lse[row], std::log(seen), 1e-6f * (1.0f + std::log(seen)));
    }
}

// Scores of some thousands: e^score is beyond fp32, but not after the largest is subtracted.
TEST(FusedAttentionRange, HoldsForLargeScores) {
    const AttentionShape s{1, 200, 8, 1, 1};
    Floats qkv = normals(qkv_elements(s), "qkv");
    for (float& x : qkv) x *= 60.0f;
    Floats out(elements(s), NAN), lse(rows(s), NAN);
    fused_attention_forward(qkv.data(), out.data(), lse.data(), s);
    const auto plain =
        reference::attention_forward(in_double(qkv), s.batch, s.context, s.width, s.heads, s.kv_heads);
    // A score of 10^4 in fp32 is off by 10^-3, and so is its probability.
    EXPECT_LE(relative_error(in_double(out), plain.out), 5e-3);
}

TEST(FusedAttentionRange, PropagatesNan) {
    const AttentionShape s{1, 70, 4, 1, 1};
    Floats qkv = normals(qkv_elements(s), "qkv");
    qkv[0] = NAN;  // the first query
    Floats out(elements(s), 0.0f), lse(rows(s), 0.0f);
    fused_attention_forward(qkv.data(), out.data(), lse.data(), s);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_FALSE(std::isnan(out[static_cast<std::size_t>(s.width)]));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
