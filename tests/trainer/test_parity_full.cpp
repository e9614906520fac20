// The whole grid of strategies and options with AdamW, point by point, one test per strategy; see
// test_parity_grid.cpp for the pairs of all factors.
#include <gtest/gtest.h>

#include "parity_testing.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::Point;

struct Strategy {
    const char* name;
    int number;
    // Points of the strategy's grid whose losses equal one rank's bit for bit, and those within 1e-6 of it.
    int to_the_bit;
    int within_1e6;
};

// Wrap (3), backward prefetch (3), forward prefetch (2), checkpointing (2), model (2), accumulation (1 bit
// for bit, 2 within 1e-6), ranks (3): 72 points of each accumulation per number of ranks. FULL_SHARD and
// SHARD_GRAD_OP times offload (2) times layout and limiter (fsdp1 2, fsdp2 1, lean 2); NO_SHARD times limiter
// (2); HYBRID_SHARD exists only on 4 ranks; DDP and ZERO_1 have checkpointing, model and accumulation.
constexpr Strategy kStrategies[] = {{"FullShard", 0, 72 * 3 * 2 * 5, 72 * 3 * 2 * 5},
                                    {"ShardGradOp", 1, 72 * 3 * 2 * 5, 72 * 3 * 2 * 5},
                                    {"NoShard", 2, 72 * 3 * 2, 72 * 3 * 2},
                                    {"HybridShard", 3, 0, 2 * 72 * 2 * 5},
                                    {"Ddp", 4, 12, 12},
                                    {"Zero1", 5, 12, 12}};

class ParityFull : public ::testing::TestWithParam<Strategy> {};

TEST_P(ParityFull, EveryPointOfTheGrid) {
    const testing::SampleText text;
    testing::References references(text);
    constexpr std::array kVaried = {
        testing::wrap,          testing::backward,     testing::forward, testing::limiter, testing::offload,
        testing::checkpointing, testing::accumulation, testing::layout,  testing::model,   testing::ranks};
    const auto values = [](testing::Factor factor) {
        // The pairs in test_parity_grid.cpp cover accumulation without synchronization and the two other
        // models.
        const bool two = factor == testing::accumulation || factor == testing::model;
        return two ? 2 : testing::kValues[factor];
    };
    int all = 1;
    for (const testing::Factor factor : kVaried) all *= values(factor);
    for (int number = 0; number < all; ++number) {
        Point p{};
        p[testing::strategy] = GetParam().number;
        p[testing::optimizer] = 1;
        int rest = number;
        for (const testing::Factor factor : kVaried) {
            p[factor] = rest % values(factor);
            rest /= values(factor);
        }
        if (testing::possible(p)) testing::expect_parity(p, text, references);
    }
    EXPECT_EQ(references.to_the_bit, GetParam().to_the_bit);
    EXPECT_EQ(references.within_1e6, GetParam().within_1e6);
}

INSTANTIATE_TEST_SUITE_P(Strategies, ParityFull, ::testing::ValuesIn(kStrategies),
                         [](const auto& named) { return named.param.name; });

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
