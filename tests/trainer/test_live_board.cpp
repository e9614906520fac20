// What ranks tell of themselves while they run.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/executor/live_board.h"
#include "trainer/executor/run.h"
#include "trainer/world/message.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using plan::CommunicatorId;
using traces::schema::Operation;
using traces::status::GroupProgress;

const GroupProgress& group(const LiveRank& rank, std::int64_t id) {
    for (const GroupProgress& each : rank.groups) {
        if (each.group == id) return each;
    }
    throw std::runtime_error("the rank has not told of that group");
}

void enter(LiveBoard& board, int rank, CommunicatorId group, std::int64_t number, Operation operation) {
    board.collective(rank, group, number, operation).enter(profiler::ticks());
}

void leave(LiveBoard& board, int rank, CommunicatorId group, std::int64_t number) {
    board.collective(rank, group, number, {}).leave(profiler::ticks());
}

TEST(LiveBoard, KnowsTheCollectiveThatARankIsIn) {
    LiveBoard board({4, 5});
    EXPECT_EQ(board.of(4).steps_done, -1);
    EXPECT_TRUE(board.of(4).groups.empty());
    enter(board, 5, CommunicatorId{0}, 0, Operation::all_gather);
    leave(board, 5, CommunicatorId{0}, 0);
    enter(board, 5, CommunicatorId{2}, 7, Operation::reduce_scatter);
    enter(board, 5, CommunicatorId{0}, 1, Operation::all_gather);
    board.stepped(5, 3, 100, 200);
    const LiveRank rank = board.of(5);
    EXPECT_EQ(rank.steps_done, 3);
    EXPECT_EQ(rank.memory_bytes, 100);
    EXPECT_EQ(rank.peak_bytes, 200);
    EXPECT_EQ(group(rank, 0).entered, 2);
    EXPECT_EQ(group(rank, 0).left, 1);
    EXPECT_EQ(group(rank, 0).operation, "all_gather");
    EXPECT_EQ(group(rank, 2).entered, 8);
    EXPECT_EQ(group(rank, 2).left, 0);
    EXPECT_EQ(group(rank, 2).operation, "reduce_scatter");
    EXPECT_TRUE(board.of(4).groups.empty());
}

TEST(LiveBoard, MeasuresHowLongARankHasBeenInIt) {
    LiveBoard board({0});
    enter(board, 0, CommunicatorId::world, 0, Operation::all_reduce);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_GE(group(board.of(0), 0).for_s, 0.029);
    EXPECT_EQ(board.of(0).waited_ns, 0);
    leave(board, 0, CommunicatorId::world, 0);
    EXPECT_GE(board.of(0).waited_ns, 29'000'000);
}

TEST(LiveBoard, ACounterThatWasAheadIsNoWait) {
    LiveBoard board({0});
    const LiveCollective collective = board.collective(0, CommunicatorId::world, 0, Operation::all_reduce);
    const profiler::Ticks now = profiler::ticks();
    collective.enter(profiler::Ticks{now.count + 9});
    collective.leave(now);
    EXPECT_EQ(board.of(0).waited_ns, 0);
    EXPECT_LT(group(board.of(0), 0).for_s, 60);
}

// Collectives of a group may end in another order than they began.
TEST(LiveBoard, CountsTheLatestThatWasLeft) {
    LiveBoard board({0});
    enter(board, 0, CommunicatorId::world, 0, Operation::all_reduce);
    enter(board, 0, CommunicatorId::world, 1, Operation::all_reduce);
    leave(board, 0, CommunicatorId::world, 1);
    leave(board, 0, CommunicatorId::world, 0);
    EXPECT_EQ(group(board.of(0), 0).left, 2);
}

TEST(LiveBoard, LeavesOutGroupsForWhichThereIsNoRoom) {
    LiveBoard board({0});
    for (int id = 0; id < 100; ++id) {
        enter(board, 0, CommunicatorId{id}, 0, Operation::send);
        leave(board, 0, CommunicatorId{id}, 0);
    }
    EXPECT_EQ(board.of(0).groups.size(), 16u);
}

TEST(LiveBoard, ItsTextReadsBackAndIsRefusedIfItIsCutOff) {
    LiveBoard board({0});
    enter(board, 0, CommunicatorId{3}, 41, Operation::broadcast);
    board.stepped(0, 9, 1, 2);
    const std::string text = board.of(0).text();
    const LiveRank read = LiveRank::from_text(text);
    EXPECT_EQ(read.steps_done, 9);
    EXPECT_EQ(group(read, 3).entered, 42);
    EXPECT_EQ(group(read, 3).operation, "broadcast");
    for (std::size_t length = 0; length < text.size(); ++length)
        EXPECT_THROW(LiveRank::from_text(text.substr(0, length)), world::MessageError) << length;
}

TEST(LiveBoard, TheMeanOfStepsLeavesOutTheFirst) {
    LiveBoard board({0});
    EXPECT_EQ(board.steps().done, -1);
    StepReport step;
    for (int i = 0; i < 3; ++i) {
        step.step = 10 + i;  // of a run that continues
        step.loss = 2.0 - i;
        step.seconds_since_start = 5.0 + 0.5 * i;  // the first takes 5 s
        step.seconds = i == 0 ? 0 : 0.5;
        board.known(step);
    }
    const LiveSteps steps = board.steps();
    EXPECT_EQ(steps.done, 13);
    EXPECT_EQ(steps.loss, 0.0);
    EXPECT_DOUBLE_EQ(steps.mean_step_s, 0.5);
    EXPECT_DOUBLE_EQ(steps.step_s, 0.5);
    EXPECT_FALSE(steps.epoch);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
