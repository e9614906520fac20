// Kernels by name: counts, times, percentiles, shares, weighted blocks and occupancy.
#include "traces/analysis/time/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Kernels, AreSummedByNameAndSortedByTotal) {
    RunBuilder run;
    run.kernel(0, 100, 110, 10, 7, "gemm");
    run.kernel(0, 200, 230, 20, 7, "gemm");
    run.kernel(0, 300, 320, 30, 7, "gemm");
    run.kernel(0, 400, 440, 40, 7, "relu");
    run.collective(0, 500, 600, {.launched = 50});
    run.memcpy(0, 700, 800, 60);  // not a kernel
    run.memset(0, 900, 950, 70);
    const auto trace = run.take();
    const RankKernels rank = kernels_report(*trace).ranks[0];
    EXPECT_EQ(rank.distinct, 3);
    EXPECT_EQ(rank.count, 5);
    EXPECT_EQ(rank.total, 10 + 30 + 20 + 40 + 100);
    ASSERT_THAT(rank.kernels, SizeIs(3));
    EXPECT_TRUE(rank.kernels[0].communication);
    EXPECT_DOUBLE_EQ(rank.kernels[0].share, 50.0);
    const KernelStats& gemm = rank.kernels[1];
    EXPECT_EQ(gemm.name, "gemm");
    EXPECT_EQ(gemm.count, 3);
    EXPECT_EQ(gemm.total, 60);
    EXPECT_EQ(gemm.shortest, 10);
    EXPECT_EQ(gemm.longest, 30);
    EXPECT_DOUBLE_EQ(gemm.mean, 20);
    EXPECT_DOUBLE_EQ(gemm.median, 20);
    EXPECT_DOUBLE_EQ(gemm.p95, 20 + 0.9 * 10);  // position 0.95 * 2 = 1.9 of 10, 20, 30
    EXPECT_DOUBLE_EQ(gemm.share, 30.0);
    EXPECT_EQ(gemm.blocks_per_sm, std::nullopt);
}

TEST(Kernels, WeightBlocksAndOccupancyWithTheDurationsThatKnowThem) {
    RunBuilder run;
    const auto kernel = [&](std::int64_t start, std::int64_t length, float blocks, float occupancy) {
        run.sink().add(schema::KernelRow{.start = start,
                                         .end = start + length,
                                         .device = 0,
                                         .stream = 7,
                                         .global_pid = RunBuilder::pid(0),
                                         .short_name = run.sink().intern("gemm"),
                                         .blocks_per_sm = blocks,
                                         .occupancy = occupancy});
    };
    kernel(100, 10, 2, 50);
    kernel(200, 30, 4, 0);    // an occupancy of 0 is known
    kernel(300, 60, -1, -1);  // unknown occupancy
    const auto trace = run.take();
    const KernelStats& gemm = kernels_report(*trace).ranks[0].kernels.at(0);
    ASSERT_TRUE(gemm.blocks_per_sm && gemm.occupancy_percent);
    EXPECT_DOUBLE_EQ(*gemm.blocks_per_sm, (2 * 10 + 4 * 30) / 40.0);
    EXPECT_DOUBLE_EQ(*gemm.occupancy_percent, (50 * 10 + 0 * 30) / 40.0);
}

TEST(Kernels, HaveAtMostTheRequestedRowsButTotalsOfAll) {
    RunBuilder run(2);
    run.step(0, 0, 0, 100);
    run.step(0, 1, 100, 200);
    run.kernel(0, 10, 20, 5, 7, "a");
    run.kernel(0, 110, 140, 105, 7, "b");
    run.kernel(1, 10, 20, 5, 7, "c");
    const auto trace = run.take();
    const RankKernels first = kernels_report(*trace, {.rank = 0}, 1).ranks.at(0);
    ASSERT_THAT(first.kernels, SizeIs(1));
    EXPECT_EQ(first.kernels[0].name, "b");
    EXPECT_DOUBLE_EQ(first.kernels[0].share, 75.0);
    EXPECT_EQ(first.distinct, 2);
    EXPECT_EQ(first.count, 2);
    const RankKernels step = kernels_report(*trace, {.rank = 0, .first_step = 0, .last_step = 0}).ranks.at(0);
    ASSERT_THAT(step.kernels, SizeIs(1));
    EXPECT_EQ(step.kernels[0].name, "a");
    EXPECT_THAT(kernels_report(*trace, {.rank = 1, .from_ns = 50}).ranks.at(0).kernels, IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
