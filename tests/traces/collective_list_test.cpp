// Every single collective. Times in nanoseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/distributed.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two ranks gather 4000 bytes: rank 0 from 100 to 500, rank 1 from 300 to 500; rank 0 computes from 150 to
// 250 and, past the gather's end, from 450 to 600. Later rank 1 is in a reduction for longer.
std::unique_ptr<store::Trace> two_ranks() {
    RunBuilder run(2);
    const auto part = [&](int rank, schema::Operation operation, std::int64_t sequence, std::int64_t start,
                          std::int64_t end) {
        run.collective(rank, start, end,
                       {.operation = operation, .bytes = 4000, .sequence = sequence, .group_size = 2});
    };
    part(0, schema::Operation::all_gather, 1, 100, 500);
    part(1, schema::Operation::all_gather, 1, 300, 500);
    run.kernel(0, 150, 250);
    run.kernel(0, 450, 600);
    part(0, schema::Operation::reduce_scatter, 2, 1000, 1100);
    part(1, schema::Operation::reduce_scatter, 2, 900, 1100);
    return run.take();
}

TEST(CollectiveList, HasTransferWaitingAndHiddenTime) {
    const auto trace = two_ranks();
    const auto list = collective_list(*trace);
    ASSERT_THAT(list, SizeIs(2));
    const CollectiveTimes& gather = list[0];
    EXPECT_EQ(gather.operation, schema::Operation::all_gather);
    EXPECT_EQ(gather.sequence, 1);
    EXPECT_EQ(gather.ranks, 2);
    EXPECT_EQ(gather.start_ns, 100);
    EXPECT_EQ(trace->device.rank[static_cast<std::size_t>(gather.event)], 0)
        << "the rank that was longest in it";
    EXPECT_EQ(gather.transfer_ns, 200);
    EXPECT_EQ(gather.longest_ns, 400);
    EXPECT_EQ(gather.waiting_ns, 200);
    EXPECT_EQ(gather.last_rank, 1);
    EXPECT_EQ(gather.overlapped_ns, 100 + 50) << "150 to 250 and 450 to 500";
    EXPECT_EQ(gather.exposed_ns, (400 - 150) + 200);
    EXPECT_DOUBLE_EQ(gather.algbw_gbps, 4000.0 / 200);
    EXPECT_DOUBLE_EQ(gather.busbw_gbps, 4000.0 / 200 / 2) << "(n - 1) / n of an all-gather";
    EXPECT_EQ(list[1].last_rank, 0);
    EXPECT_EQ(list[1].exposed_ns, 100 + 200);
}

// The sums are those of the report by group, and its slowest are the same collectives.
TEST(CollectiveList, AgreesWithTheDistributedReport) {
    const auto trace = two_ranks();
    const auto list = collective_list(*trace);
    const DistributedReport report = distributed_report(*trace);
    std::int64_t transfer = 0, waiting = 0;
    for (const Traffic& t : report.traffic) {
        transfer += t.transfer_ns;
        waiting += t.waiting_ns;
    }
    EXPECT_EQ(transfer, list[0].transfer_ns + list[1].transfer_ns);
    EXPECT_EQ(waiting, list[0].waiting_ns + list[1].waiting_ns);
    ASSERT_THAT(report.slowest, SizeIs(2));
    EXPECT_EQ(report.slowest[0].waiting_ns, 200);
    EXPECT_EQ(report.slowest[0].last_rank, 1);
}

TEST(CollectiveList, LeavesWhatStartsOutsideOfTheRange) {
    const auto trace = two_ranks();
    Selection selection;
    selection.from_ns = 250;
    selection.to_ns = 800;
    const auto list = collective_list(*trace, selection);
    ASSERT_THAT(list, SizeIs(1)) << "rank 1's part of the gather starts inside";
    EXPECT_EQ(list[0].longest_ns, 400) << "with all its parts";
    selection.from_ns = 600;
    EXPECT_THAT(collective_list(*trace, selection), IsEmpty());
    EXPECT_THAT(collective_list(store::Trace()), IsEmpty());
}

TEST(RankSkew, NamesTheRankThatOthersWaitForAndTheOneThatComputesLongest) {
    DistributedReport report;
    RankTraffic first{.rank = 0, .steps = 2, .ns = 9000, .transfer_ns = 1000};
    first.parts.computation = 3000;
    first.parts.overlapped = 1000;
    RankTraffic second{.rank = 1, .steps = 2, .ns = 1400, .transfer_ns = 1000};
    second.parts.computation = 12000;
    report.ranks = {first, second};
    const RankSkew skew = rank_skew(report);
    EXPECT_EQ(skew.waited_for, 1);
    EXPECT_DOUBLE_EQ(skew.least_waiting_us, 0.2);  // 400 ns in two steps
    EXPECT_DOUBLE_EQ(skew.most_waiting_us, 4.0);
    EXPECT_EQ(skew.slowest_rank, 1);
    EXPECT_DOUBLE_EQ(skew.computation, 1.5) << "12000 over the mean of 4000 and 12000";
    report.ranks[1].parts = report.ranks[0].parts;
    EXPECT_EQ(rank_skew(report).slowest_rank, -1) << "both compute 4000";
    report.ranks.pop_back();
    EXPECT_EQ(rank_skew(report).waited_for, -1) << "one rank waits for no other";
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
