// How a token is drawn from logits.
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/cli/next_token.h"

namespace shardscope::trainer::cli {
namespace TEST_FILE {

// softmax(ln 1, ln 2, ln 5) = 1/8, 2/8, 5/8; the likeliest comes first in [0, 1).
TEST(NextToken, TakesItsShareOfTheUnitInterval) {
    const std::vector<float> logits = {std::log(1.0F), std::log(2.0F), std::log(5.0F)};
    const Sampling plain{.temperature = 1, .top_k = 3};
    EXPECT_EQ(next_token(logits, plain, 0), 2);
    EXPECT_EQ(next_token(logits, plain, 0.62), 2);
    EXPECT_EQ(next_token(logits, plain, 0.63), 1);
    EXPECT_EQ(next_token(logits, plain, 0.87), 1);
    EXPECT_EQ(next_token(logits, plain, 0.88), 0);
    EXPECT_EQ(next_token(logits, plain, 0.999999), 0);
}

// Temperature 1/2 squares the shares: 1/30, 4/30, 25/30.
TEST(NextToken, ALowTemperatureFavoursTheLikely) {
    const std::vector<float> logits = {std::log(1.0F), std::log(2.0F), std::log(5.0F)};
    const Sampling cold{.temperature = 0.5, .top_k = 3};
    EXPECT_EQ(next_token(logits, cold, 0.83), 2);
    EXPECT_EQ(next_token(logits, cold, 0.84), 1);
    EXPECT_EQ(next_token(logits, cold, 0.96), 1);
    EXPECT_EQ(next_token(logits, cold, 0.97), 0);
}

TEST(NextToken, OnlyTheLikeliestAreDrawnFrom) {
    std::vector<float> logits(100);
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 10);  // ten of 9
    std::map<std::int32_t, int> drawn;
    for (int i = 0; i < 1000; ++i) ++drawn[next_token(logits, {.temperature = 1, .top_k = 5}, i / 1000.0)];
    // Among equal ones the first: 9, 19, 29, 39, 49, each a fifth.
    EXPECT_EQ(drawn, (std::map<std::int32_t, int>{{9, 200}, {19, 200}, {29, 200}, {39, 200}, {49, 200}}));
    EXPECT_EQ(next_token(logits, {.temperature = 1, .top_k = 1}, 0.99), 9);
}

TEST(NextToken, HugeLogitsDoNotOverflow) {
    const std::vector<float> logits = {-3e38F, 3e38F, 2.9e38F};
    EXPECT_EQ(next_token(logits, {}, 0.5), 1);
    EXPECT_EQ(next_token(std::vector<float>{7}, {}, 0.5), 0);
}

TEST(NextToken, ALogitThatIsNotFiniteIsReported) {
    EXPECT_EQ(next_token(std::vector<float>{1, std::nanf("")}, {}, 0.5), -1);
    EXPECT_EQ(next_token(std::vector<float>{std::numeric_limits<float>::infinity(), 1}, {}, 0.5), -1);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cli
