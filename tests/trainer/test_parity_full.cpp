// The whole grid of strategies and options at one layout and optimizer, point by point; see
// test_parity_grid.cpp for the pairs of everything.
#include <gtest/gtest.h>

#include "parity_testing.h"

namespace shardscope::trainer {
namespace {

using testing::Point;

TEST(ParityFull, EveryPointOfTheGrid) {
    const testing::SampleText text;
    testing::References references(text);
    int points = 0;
    // Strategy, wrap, backward (PRE, NONE), limiter, offload, checkpointing, accumulation (1, 2), model (mlp,
    // gpt), ranks.
    constexpr std::array<std::pair<testing::Factor, int>, 9> kGrid = {{{testing::strategy, 6},
                                                                       {testing::wrap, 3},
                                                                       {testing::backward, 2},
                                                                       {testing::limiter, 2},
                                                                       {testing::offload, 2},
                                                                       {testing::checkpointing, 2},
                                                                       {testing::accumulation, 2},
                                                                       {testing::model, 2},
                                                                       {testing::ranks, 3}}};
    int all = 1;
    for (const auto& [factor, values] : kGrid) all *= values;
    for (int number = 0; number < all; ++number) {
        Point p{};
        p[testing::optimizer] = 1;
        int rest = number;
        for (const auto& [factor, values] : kGrid) {
            p[factor] = rest % values;
            rest /= values;
        }
        if (!testing::possible(p)) continue;
        ++points;
        testing::expect_parity(p, text, references);
    }
    // FULL_SHARD and SHARD_GRAD_OP: 576 each; NO_SHARD without offload: 288; HYBRID_SHARD on 4 ranks: 192;
    // ddp and ZeRO-1, with neither wrap nor prefetch nor limiter nor offload: 24 each.
    EXPECT_EQ(points, 576 + 576 + 288 + 192 + 24 + 24);
}

}  // namespace
}  // namespace shardscope::trainer
