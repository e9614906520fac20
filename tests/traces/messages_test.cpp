// A send and its receive as one match: which rank is the other end, and which message is whose counterpart.
#include "traces/analysis/communication/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/communication/stragglers.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using schema::Operation;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// Rank 0 sends two messages to rank 1 in group 5. The second time rank 1 is there before rank 0 and waits.
TEST(Messages, ASendAndItsReceiveAreOneMatch) {
    RunBuilder run(2);
    const auto message = [&](int rank, Operation operation, std::int64_t sequence, std::int64_t start,
                             std::int64_t end) {
        run.collective(
            rank, start, end,
            {.operation = operation, .bytes = 4096, .sequence = sequence, .group = 5, .group_size = 2});
    };
    message(0, Operation::send, 0, 100, 300);
    message(1, Operation::recv, 0, 200, 300);
    message(0, Operation::send, 1, 900, 1000);
    message(1, Operation::recv, 1, 600, 1000);
    const auto trace = run.take();
    const Communications all = match_communications(*trace);
    ASSERT_THAT(all.matches, SizeIs(2));
    for (const CollectiveMatch& match : all.matches) {
        ASSERT_THAT(all.of(match), SizeIs(2));
        EXPECT_EQ(all.of(match)[0].operation, Operation::send);
        EXPECT_EQ(all.of(match)[1].operation, Operation::recv);
        EXPECT_EQ(match.ends, (MessageEnds{0, 1}));
        EXPECT_EQ(match.transfer_ns, 100);
        EXPECT_FALSE(match.unmatched);
    }
    const std::vector<CollectiveTimes> list = collective_list(*trace);
    ASSERT_THAT(list, SizeIs(2));
    EXPECT_EQ(list[1].ends, (MessageEnds{0, 1}));
    EXPECT_EQ(list[1].waiting_ns, 300);
    EXPECT_EQ(list[1].last_rank, 0);
    EXPECT_DOUBLE_EQ(list[1].algbw_gbps, 40.96);
    const DistributedReport distributed = distributed_report(*trace);
    EXPECT_EQ(distributed.collectives, 2);
    ASSERT_THAT(distributed.slowest, SizeIs(2));
    EXPECT_EQ(distributed.slowest[0].ends, (MessageEnds{0, 1}));
    const StragglersReport stragglers = straggler_report(*trace);
    EXPECT_EQ(stragglers.collectives, 2);
    ASSERT_THAT(stragglers.kinds, SizeIs(1));
    EXPECT_EQ(stragglers.kinds[0].operation, Operation::send);
}

// Both directions in one group, numbered by each rank for itself as PyTorch does in a group of three: the
// order of each pair and direction decides.
TEST(Messages, HaveTheEndsThatTheRangeNamesInALargerGroup) {
    RunBuilder run(0);
    for (const int rank : {4, 8, 12}) {
        run.sink().add(schema::RankRow{.rank = rank,
                                       .device = rank,
                                       .global_pid = run.pid(rank),
                                       .global_tid = run.tid(rank),
                                       .host = "",
                                       .device_name = "",
                                       .cpus = {}});
        run.sink().add(schema::ThreadRow{.global_tid = run.tid(rank), .name = "rank", .rank = rank});
    }
    run.sink().add(schema::GroupRow{
        .group = 9, .axis = "pipeline", .ranks = "[4, 8, 12]", .name = "3", .description = "mesh_pp"});
    std::map<int, std::int64_t> sequence;
    const auto message = [&](int rank, const char* name, std::int64_t at) {
        const bool sends = std::string_view(name).starts_with("nccl:send");
        run.range(rank, at, at + 10, name);
        run.collective(rank, at + 20, at + 40,
                       {.operation = sends ? Operation::send : Operation::recv,
                        .bytes = 64,
                        .sequence = sequence[rank]++,
                        .group = 9,
                        .group_size = 3,
                        .launched = at + 1});
    };
    message(4, "nccl:send 0->1", 0);
    message(8, "nccl:recv 1<-0", 0);
    message(8, "nccl:send 1->2", 100);
    message(12, "nccl:recv 2<-1", 100);
    message(12, "nccl:send 2->1", 200);
    message(8, "nccl:recv 1<-2", 200);
    message(4, "nccl:send 0->1", 300);
    message(8, "nccl:recv 1<-0", 300);
    const auto trace = run.take();
    const Communications all = match_communications(*trace);
    std::vector<MessageEnds> ends;
    for (const CollectiveMatch& match : all.matches) {
        EXPECT_THAT(all.of(match), SizeIs(2));
        EXPECT_FALSE(match.unmatched);
        ends.push_back(match.ends);
        std::int64_t starts[2];
        for (int i = 0; i < 2; ++i)
            starts[i] =
                trace->device
                    .start[static_cast<std::size_t>(all.of(match)[static_cast<std::size_t>(i)].event)];
        EXPECT_EQ(starts[0], starts[1]) << "the ends of one message start together here";
    }
    EXPECT_THAT(ends, ::testing::UnorderedElementsAre(MessageEnds{4, 8}, MessageEnds{4, 8},
                                                      MessageEnds{8, 12}, MessageEnds{12, 8}));
}

// Each end lacks one message of the other: the numbers in common say so. Without a number in common the ranks
// count differently, and the order decides.
TEST(Messages, OfTwoRanksMatchByNumberIfTheyShareOne) {
    const auto matches = [](std::int64_t first_received) {
        RunBuilder run(2);
        for (std::int64_t m = 0; m < 3; ++m) {
            run.collective(0, 100 * m, 100 * m + 10,
                           {.operation = Operation::send, .sequence = m, .group = 5, .group_size = 2});
            run.collective(
                1, 100 * m, 100 * m + 10,
                {.operation = Operation::recv, .sequence = first_received + m, .group = 5, .group_size = 2});
        }
        const Communications all = match_communications(*run.take());
        std::vector<bool> unmatched;
        for (const CollectiveMatch& match : all.matches) unmatched.push_back(match.unmatched);
        return unmatched;
    };
    EXPECT_THAT(matches(1), ::testing::UnorderedElementsAre(true, false, false, true));
    EXPECT_THAT(matches(3), ElementsAre(false, false, false));
}

TEST(Messages, OneWithoutItsOtherEndIsUnmatchedOnlyIfThatRankIsInTheTrace) {
    const auto unmatched = [](int ranks, bool known) {
        RunBuilder run(ranks);
        if (known)
            run.sink().add(
                schema::GroupRow{.group = 5, .axis = "", .ranks = "0,1", .name = "", .description = ""});
        run.collective(0, 0, 10, {.operation = Operation::send, .sequence = 0, .group = 5, .group_size = 2});
        const Communications all = match_communications(*run.take());
        EXPECT_THAT(all.matches, SizeIs(1));
        return all.matches[0].unmatched;
    };
    EXPECT_TRUE(unmatched(2, true));
    EXPECT_FALSE(unmatched(1, true)) << "rank 1 was not recorded";
    EXPECT_FALSE(unmatched(2, false)) << "nothing names the other end";
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
