// When a run counts as diverged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/executor/divergence.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

Divergence after(double above, std::initializer_list<double> losses) {
    Divergence divergence(above);
    std::int64_t step = 4;  // a resumed run begins later
    for (const double loss : losses) {
        divergence.add({.step = step, .sample = 8 * step, .time = 100 * step}, loss);
        ++step;
    }
    return divergence;
}

TEST(Divergence, IsFromTheStepOnThatStaysAboveTheBound) {
    const Divergence divergence = after(10, {2, 1, 20.5, 300, 21});
    ASSERT_TRUE(divergence.since());
    EXPECT_EQ(divergence.since()->step, 6);
    EXPECT_EQ(divergence.since()->time, 600);
    EXPECT_THAT(divergence.sentence(),
                ::testing::AllOf(::testing::StartsWith("the run diverged: from step 6 on (counted from 0) "),
                                 ::testing::HasSubstr("above 10 times its first value"),
                                 ::testing::HasSubstr("it was 2 at first and 21 at the end;"),
                                 ::testing::HasSubstr("lower optimizer.lr")));
}

TEST(Divergence, IsNotALossThatComesDownAgainOrReachesTheBound) {
    EXPECT_FALSE(after(10, {2, 500, 20}).since());
    EXPECT_FALSE(after(10, {}).since());
    EXPECT_EQ(after(10, {2, 500, 1, 40, 40, 40}).since()->step, 7);
}

TEST(Divergence, IsNotOneBadBatchAtTheEnd) {
    EXPECT_FALSE(after(10, {2, 1, 40}).since());
    EXPECT_FALSE(after(10, {2, 40, 40, 1, 40, 40}).since());
    EXPECT_TRUE(after(10, {2, 1, 40, 40, 40}).since());
}

TEST(Divergence, HasNoBoundAtZero) {
    EXPECT_FALSE(after(0, {1, 1e30, 1e30, 1e30}).since());
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
