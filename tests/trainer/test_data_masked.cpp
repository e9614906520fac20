// Text with gaps: how many, what replaces them, and that they do not depend on how samples are requested.
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/data/masked.h"
#include "trainer/job/masking.h"

namespace shardscope::trainer::data {
namespace TEST_FILE {

constexpr int kContext = 40, kText = 50;  // tokens of a sample; distinct ones in the text
constexpr std::int32_t kMask = kText;
using Tokens = std::vector<std::int32_t>;

// Token t of sample i is (7 i + t) modulo kText.
class Counting final : public Dataset {
  public:
    std::int64_t input_bytes() const override { return kContext * 4; }
    std::int64_t target_bytes() const override { return kContext * 4; }
    std::int64_t samples() const override { return 1000; }
    void fill(std::int64_t first, int count, void* input, void*) const override {
        auto* tokens = static_cast<std::int32_t*>(input);
        for (int i = 0; i < count; ++i)
            for (int t = 0; t < kContext; ++t) *tokens++ = token(first + i, t);
    }
    static std::int32_t token(std::int64_t sample, int t) {
        return static_cast<std::int32_t>((7 * sample + t) % kText);
    }
};

MaskedDataset masked(std::int64_t seed = 1) {
    return {std::make_unique<Counting>(), {.context = kContext, .mask = kMask, .seed = seed}};
}

TEST(Masked, HidesFifteenInAHundred) {
    EXPECT_EQ(job::masked_tokens(512), 77);  // 76.8
    EXPECT_EQ(job::masked_tokens(40), 6);
    EXPECT_EQ(job::masked_tokens(1), 1);
    EXPECT_EQ(masked().samples(), 1000);
    EXPECT_EQ(masked().target_bytes(), kContext * 4);
}

// 6 of 40 tokens of each of 2,000 samples: 12,000, of which 80 % are hidden, 10 % replaced (by the same one
// in 1 case of 51) and 10 % unchanged; 4 deviations of 12,000 draws are 175 and 131.
TEST(Masked, HidesReplacesAndKeeps) {
    constexpr int kSamples = 2000;
    const MaskedDataset data = masked();
    Tokens tokens(kSamples * kContext), targets(tokens.size());
    data.fill(0, kSamples, tokens.data(), targets.data());
    int hidden = 0, exchanged = 0, left = 0;
    std::vector<int> at(kContext);
    for (int i = 0; i < kSamples; ++i) {
        int chosen = 0;
        for (int t = 0; t < kContext; ++t) {
            const auto place = static_cast<std::size_t>(i * kContext + t);
            const std::int32_t was = Counting::token(i, t);
            if (targets[place] == MaskedDataset::kNoTarget) {
                ASSERT_EQ(tokens[place], was);
                continue;
            }
            ++chosen;
            ++at[static_cast<std::size_t>(t)];
            ASSERT_EQ(targets[place], was);
            ASSERT_LE(tokens[place], kMask);
            ASSERT_GE(tokens[place], 0);
            ++(tokens[place] == kMask ? hidden : tokens[place] == was ? left : exchanged);
        }
        ASSERT_EQ(chosen, 6) << "sample " << i;
    }
    EXPECT_NEAR(hidden, 9600, 175);
    EXPECT_NEAR(exchanged, 1200 * 49.0 / 50, 131);
    EXPECT_NEAR(left, 1200 * 51.0 / 50, 131);
    // Every position is masked as often as any other: 300 times of 2,000; 4 deviations are 64.
    for (const int times : at) EXPECT_NEAR(times, 300, 64);
}

TEST(Masked, SamplesDoNotDependOnTheOrderOfAccess) {
    const MaskedDataset data = masked();
    Tokens tokens(10 * kContext), targets(tokens.size());
    data.fill(300, 10, tokens.data(), targets.data());
    for (int i = 0; i < 10; ++i) {
        Tokens own(kContext), own_targets(kContext);
        masked().fill(300 + i, 1, own.data(), own_targets.data());
        EXPECT_TRUE(std::equal(own.begin(), own.end(), tokens.begin() + i * kContext));
        EXPECT_TRUE(std::equal(own_targets.begin(), own_targets.end(), targets.begin() + i * kContext));
    }
}

TEST(Masked, AnotherSeedOrEpochHidesOthers) {
    Tokens tokens(kContext), first(kContext), other(kContext), later(kContext);
    masked(1).fill(0, 1, tokens.data(), first.data());
    masked(2).fill(0, 1, tokens.data(), other.data());
    masked(1).fill(kText, 1, tokens.data(), later.data());  // the same text
    EXPECT_NE(first, other);
    EXPECT_NE(first, later);
}

TEST(Masked, NeedsSamplesOfItsContext) {
    EXPECT_THROW(MaskedDataset(std::make_unique<Counting>(), {.context = 41, .mask = 9}),
                 std::invalid_argument);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::data
