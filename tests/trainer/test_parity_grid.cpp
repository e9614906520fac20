// The rule of numerics over the whole grid: strategies, wraps, prefetch, limiter, offload, layouts,
// checkpointing and accumulation change time and memory, not results. In fp32 a step's losses are those of
// one rank that computes all ranks' micro-batches in turn: bit for bit, or within 1e-6 if sums are in another
// order (HYBRID_SHARD, accumulation).
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "jobs.h"
#include "parity_grid.h"
#include "parity_testing.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::Point;

TEST(ParityGrid, EveryPossiblePairOfOptionsOccurs) {
    const std::vector<Point> points = testing::every_pair();
    std::set<testing::Pair> seen;
    for (const Point& p : points) {
        ASSERT_TRUE(testing::possible(p));
        testing::for_each_pair(p, [&](const testing::Pair& pair) { seen.insert(pair); });
    }
    // Every pair is tried with the other factors at the least restrictive values: FULL_SHARD on 4 ranks.
    int missing = 0;
    for (int f = 0; f < static_cast<int>(testing::kFactors); ++f) {
        for (int g = f + 1; g < static_cast<int>(testing::kFactors); ++g) {
            for (int a = 0; a < testing::kValues[static_cast<std::size_t>(f)]; ++a) {
                for (int b = 0; b < testing::kValues[static_cast<std::size_t>(g)]; ++b) {
                    Point p{};
                    p[testing::ranks] = 2;
                    p[static_cast<std::size_t>(f)] = a;
                    p[static_cast<std::size_t>(g)] = b;
                    if (testing::possible(p) && !seen.contains({f, a, g, b})) ++missing;
                }
            }
        }
    }
    EXPECT_EQ(missing, 0);
}

TEST(ParityGrid, LossesDoNotDependOnHowTheyAreComputed) {
    const testing::SampleText text;
    testing::References references(text);
    for (const Point& p : testing::every_pair()) testing::expect_parity(p, text, references);
}

// bf16 parameters and activations: within 2 % of fp32 in these five steps; and the strategies still agree
// with each other to the bit, as they round at the same places.
TEST(ParityGrid, Bf16StaysNearFp32AndAgreesWithItself) {
    const testing::SampleText text;
    for (const int model : {0, 1, 2, 3}) {
        Point p{};
        p[testing::model] = model;
        p[testing::ranks] = 1;
        p[testing::wrap] = 1;
        p[testing::optimizer] = 1;
        const std::vector<double> wide = testing::run(testing::job_at(p, text)).losses;
        std::vector<double> first;
        for (const int strategy : {0, 1, 2}) {
            for (const int layout : {0, 1, 2}) {
                for (const int offload : {0, 1}) {
                    p[testing::strategy] = strategy;
                    p[testing::layout] = layout;
                    p[testing::offload] = offload;
                    p[testing::limiter] = layout == 1 ? 0 : offload;
                    if (!testing::possible(p)) continue;
                    job::Job job = testing::job_at(p, text);
                    job.precision.param = job.precision.reduce = job.precision.buffer = job::Precision::bf16;
                    const std::vector<double> losses = testing::run(job).losses;
                    if (first.empty()) first = losses;
                    EXPECT_EQ(losses, first) << testing::describe(p);
                    for (std::size_t i = 0; i < losses.size(); ++i)
                        EXPECT_NEAR(losses[i] / wide[i], 1.0, 0.02) << testing::describe(p);
                }
            }
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
