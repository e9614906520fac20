// Collectives: counts, bytes, matching across ranks, bandwidth as nccl-tests defines it, exposure.
#include "traces/analysis/communication/collectives.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Collectives, TransferIsTheShortestDurationAmongTheRanks) {
    // 1000 bytes among 4 ranks; the ranks arrive one after another and end together.
    RunBuilder run(4);
    for (int rank = 0; rank < 4; ++rank) {
        run.collective(
            rank, 100 * rank, 500,
            {.operation = schema::Operation::all_gather, .bytes = 1000, .sequence = 3, .group_size = 4});
    }
    const auto trace = run.take();
    const CollectivesReport report = collectives_report(*trace);
    ASSERT_THAT(report.ranks, SizeIs(4));
    const OperationStats& first = report.ranks[0].operations[0];
    EXPECT_EQ(first.operation, schema::Operation::all_gather);
    EXPECT_EQ(first.count, 1);
    EXPECT_EQ(first.bytes, 1000);
    EXPECT_DOUBLE_EQ(first.us, 0.5);
    EXPECT_DOUBLE_EQ(first.transfer_us, 0.2);  // of rank 3: 300..500
    EXPECT_DOUBLE_EQ(first.waiting_us, 0.3);
    EXPECT_DOUBLE_EQ(first.algbw_gbps, 1000.0 / 200);              // bytes per ns are GB/s
    EXPECT_DOUBLE_EQ(first.busbw_gbps, 1000.0 / 200 * 3.0 / 4.0);  // (n-1)/n
    EXPECT_DOUBLE_EQ(report.ranks[3].operations[0].waiting_us, 0);
    EXPECT_EQ(report.ranks[0].unmatched, 0);
}

TEST(Collectives, BusFactorsAreThoseOfNcclTests) {
    EXPECT_DOUBLE_EQ(bus_factor(schema::Operation::all_gather, 4), 0.75);
    EXPECT_DOUBLE_EQ(bus_factor(schema::Operation::reduce_scatter, 4), 0.75);
    EXPECT_DOUBLE_EQ(bus_factor(schema::Operation::all_reduce, 4), 1.5);
    EXPECT_DOUBLE_EQ(bus_factor(schema::Operation::all_to_all, 8), 0.875);
    EXPECT_DOUBLE_EQ(bus_factor(schema::Operation::broadcast, 4), 1);
    EXPECT_DOUBLE_EQ(bus_factor(schema::Operation::send, 2), 1);
    EXPECT_TRUE(std::isnan(bus_factor(schema::Operation::all_reduce, 0)));  // size unknown
    EXPECT_DOUBLE_EQ(bus_factor(schema::Operation::broadcast, 0), 1);
}

TEST(Collectives, AreOfOneMatchOnlyWithTheSameGroupOperationAndSequence) {
    RunBuilder run(2);
    run.collective(0, 0, 100, {.bytes = 8, .sequence = 1, .group = 1, .group_size = 2});
    run.collective(1, 0, 60, {.bytes = 8, .sequence = 1, .group = 2, .group_size = 2});  // another group
    run.collective(0, 200, 300, {.bytes = 8, .sequence = 2, .group = 1, .group_size = 2});
    run.collective(1, 200, 250, {.bytes = 16, .sequence = 2, .group = 1, .group_size = 2});
    const auto trace = run.take();
    const auto matched = match_collectives(*trace);
    int unmatched = 0, differing = 0;
    for (const MatchedCollective& m : matched) {
        unmatched += m.unmatched;
        differing += m.bytes_differ;
    }
    EXPECT_EQ(unmatched, 2);
    EXPECT_EQ(differing, 2);
    const CollectivesReport report = collectives_report(*trace);
    EXPECT_EQ(report.ranks[0].unmatched, 1);
    EXPECT_DOUBLE_EQ(report.ranks[0].operations[0].transfer_us,
                     0.1 + 0.05);  // alone: its own; with rank 1: 50 ns
}

TEST(Collectives, WithoutSequenceNumbersTheyMatchByOrderIfTheCountsAgree) {
    const auto transfers = [](int on_second_rank) {
        RunBuilder run(2);
        for (int i = 0; i < 2; ++i)
            run.collective(0, 100 * i, 100 * i + 50, {.sequence = -1, .group_size = 2});
        for (int i = 0; i < on_second_rank; ++i) {
            run.collective(1, 100 * i, 100 * i + 20, {.sequence = -1, .group_size = 2});
        }
        const auto trace = run.take();
        const RankCollectives rank = collectives_report(*trace).ranks[0];
        return std::pair(rank.operations[0].transfer_us, rank.unmatched);
    };
    EXPECT_EQ(transfers(2), std::pair(0.04, std::int64_t{0}));
    EXPECT_EQ(transfers(3), std::pair(0.1, std::int64_t{2}));
}

TEST(Collectives, ExposedIsTheirUnionOutsideComputeKernels) {
    RunBuilder run;
    run.collective(0, 0, 100, {.stream = 20});
    run.collective(0, 50, 150, {.sequence = 1, .stream = 21});  // the union is 0..150
    run.kernel(0, 90, 120);
    run.memcpy(0, 0, 150);  // copies hide nothing
    const auto trace = run.take();
    const OperationStats stats = collectives_report(*trace).ranks[0].operations[0];
    EXPECT_DOUBLE_EQ(stats.us, 0.2);
    EXPECT_DOUBLE_EQ(stats.exposed_us, 0.12);
}

TEST(Collectives, PerStepFiguresLeaveOutWorkOutsideSteps) {
    RunBuilder run;
    run.collective(0, 10, 20,
                   {.operation = schema::Operation::broadcast, .bytes = 7, .launched = 5});  // set-up
    for (int s = 0; s < 2; ++s) {
        const std::int64_t at = 100 + 100 * s;
        run.step(0, s, at, at + 100);
        for (int i = 0; i < 3; ++i) {
            run.collective(0, at + 10 * i, at + 10 * i + 5,
                           {.operation = schema::Operation::all_gather,
                            .bytes = 100,
                            .sequence = 3 * s + i,
                            .launched = at + i});
        }
    }
    const auto trace = run.take();
    const RankCollectives rank = collectives_report(*trace).ranks[0];
    ASSERT_THAT(rank.operations, SizeIs(2));
    EXPECT_EQ(rank.operations[0].count, 6);
    EXPECT_DOUBLE_EQ(rank.operations[0].count_per_step, 3);
    EXPECT_DOUBLE_EQ(rank.operations[0].bytes_per_step, 300);
    EXPECT_DOUBLE_EQ(rank.operations[0].us_per_step, 0.015);
    EXPECT_EQ(rank.operations[1].operation, schema::Operation::broadcast);
    EXPECT_EQ(rank.operations[1].count, 1);
    EXPECT_DOUBLE_EQ(rank.operations[1].count_per_step, 0);

    const RankCollectives one = collectives_report(*trace, {.first_step = 1, .last_step = 1}).ranks[0];
    ASSERT_THAT(one.operations, SizeIs(1));
    EXPECT_EQ(one.operations[0].count, 3);
    EXPECT_DOUBLE_EQ(one.operations[0].count_per_step, 3);
}

TEST(Collectives, KernelsWithoutMetadataCountUnderTheirNamesOperation) {
    RunBuilder run;
    run.kernel(0, 0, 100, 0, 7,
               "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)");
    run.kernel(0, 100, 150, 1, 7, "ncclKernel_ReduceScatter_RING_LL_Sum_float");
    const auto trace = run.take();
    const RankCollectives rank = collectives_report(*trace).ranks[0];
    ASSERT_THAT(rank.operations, SizeIs(1));
    EXPECT_EQ(rank.operations[0].operation, schema::Operation::reduce_scatter);
    EXPECT_EQ(rank.operations[0].count, 2);
    EXPECT_DOUBLE_EQ(rank.operations[0].us, 0.15);
    EXPECT_EQ(rank.operations[0].bytes, 0);

    EXPECT_EQ(store::operation_of_kernel("ncclAllReduceRingLLKernel_sum_f32"), schema::Operation::all_reduce);
    EXPECT_EQ(store::operation_of_kernel("ncclDevKernel_Reduce_Sum_f32"), schema::Operation::reduce);
    EXPECT_EQ(store::operation_of_kernel("ncclDevKernel_AllGather_RING_LL"), schema::Operation::all_gather);
    EXPECT_EQ(store::operation_of_kernel("ncclDevKernel_SendRecv"), schema::Operation::other);
    EXPECT_EQ(store::operation_of_kernel("rccl_something"), schema::Operation::other);
}

TEST(Collectives, OneWithoutADeviceEventCountsButHasNoTime) {
    RunBuilder run;
    run.sink().add(schema::CollectiveRow{.rank = 0,
                                         .correlation = 999,
                                         .operation = schema::Operation::all_reduce,
                                         .bytes = 40,
                                         .group_size = 1});
    const auto trace = run.take();
    const OperationStats stats = collectives_report(*trace).ranks[0].operations[0];
    EXPECT_EQ(stats.count, 1);
    EXPECT_EQ(stats.bytes, 40);
    EXPECT_DOUBLE_EQ(stats.us, 0);
    EXPECT_DOUBLE_EQ(stats.algbw_gbps, 0);
    EXPECT_THAT(collectives_report(*trace, {.from_ns = 0}).ranks[0].operations, IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
