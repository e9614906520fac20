// Costs of kernels, calculated by hand.
#include <gtest/gtest.h>

#include "trainer/kernels/cost.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

// 8 rows, 16 in, 32 out: each of the 256 outputs takes 16 multiplications and 16 additions, and one addition
// for its bias.
TEST(Cost, OfALinearLayer) {
    const Cost cost = linear_forward_cost(8, 16, 32, true);
    EXPECT_EQ(cost.flops, 256 * 32 + 256);
    EXPECT_EQ(cost.bytes, 4 * (8 * 16 + 32 * 16 + 8 * 32 + 32));
    EXPECT_EQ(linear_forward_cost(8, 16, 32, false).flops, 256 * 32);
}

// 256 outputs: ReLU takes one operation for each, GELU 10. Nothing is read or written for it except GELU's
// sums.
TEST(Cost, OfALinearLayerWithItsActivation) {
    const Cost apart = linear_forward_cost(8, 16, 32, true);
    EXPECT_EQ(linear_relu_forward_cost(8, 16, 32, true), (Cost{apart.flops + 256, apart.bytes}));
    EXPECT_EQ(linear_gelu_forward_cost(8, 16, 32, true, false), (Cost{apart.flops + 2560, apart.bytes}));
    EXPECT_EQ(linear_gelu_forward_cost(8, 16, 32, true, true),
              (Cost{apart.flops + 2560, apart.bytes + 4 * 256}));
}

// One multiplication more for each of the 256 outputs; 512 weights of a byte, and 32 scales.
TEST(Cost, OfALinearLayerInInt8) {
    const Cost cost = int8_linear_forward_cost(8, 16, 32, true);
    EXPECT_EQ(cost.flops, 256 * 32 + 256 + 256);
    EXPECT_EQ(cost.bytes, 4 * (8 * 16 + 8 * 32 + 32 + 32) + 32 * 16);
    EXPECT_EQ(int8_linear_forward_cost(8, 16, 32, false).bytes, cost.bytes - 4 * 32);
}

TEST(Cost, BothGradientsOfALinearLayerTakeAsMuchAsItsForward) {
    const std::int64_t forward = linear_forward_cost(512, 1024, 4096, false).flops;
    EXPECT_EQ(linear_backward_input_cost(512, 1024, 4096).flops, forward);
    EXPECT_EQ(linear_backward_weight_cost(512, 1024, 4096).flops, forward);
}

// 3 positions attend to 1 + 2 + 3 = 6; width 4 over 2 heads: a pair costs 2*2 + 2*2 per head, 16 in all, and
// 5 per head.
TEST(Cost, OfAttentionCountsAttendedPairs) {
    EXPECT_EQ(causal_pairs(3), 6);
    EXPECT_EQ(attention_forward_cost(1, 3, 4, 2).flops, 6 * (16 + 2 * 5));
    EXPECT_EQ(attention_backward_cost(1, 3, 4, 2).flops, 6 * (32 + 2 * 4));
}

// The same 6 pairs; the backward recomputes each score: 2*2 per head, 8 in all, and 3 per head; a row's delta
// takes 2 * 4 more. One number per head and row (2 * 3) instead of 2 * 3 * 3 probabilities.
TEST(Cost, OfFusedAttentionHasNoQuadraticMemory) {
    EXPECT_EQ(fused_attention_forward_cost(1, 3, 4, 2).flops, attention_forward_cost(1, 3, 4, 2).flops);
    EXPECT_EQ(fused_attention_forward_cost(1, 3, 4, 2).bytes,
              attention_forward_cost(1, 3, 4, 2).bytes - 4 * (18 - 6));
    EXPECT_EQ(fused_attention_backward_cost(1, 3, 4, 2).flops, 6 * (32 + 8 + 2 * (4 + 3)) + 3 * 8);
}

// Sizes beyond 2^31 must not wrap: 2 * 10^4 * 10^4 * 10^5 = 2e13.
TEST(Cost, OfLargeLayersDoesNotOverflow) {
    EXPECT_EQ(linear_backward_input_cost(100000, 10000, 10000).flops, 20000000000000);
}

// n = 10 elements of 4 ranks: 3 additions and one scaling each; 4 reads, 1 write.
TEST(Cost, OfASumOverRanks) {
    const Cost cost = sum_ranks_cost(4, 10);
    EXPECT_EQ(cost.flops, 40);
    EXPECT_EQ(cost.bytes, 4 * 5 * 10);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
