// The arithmetic of the shard map: lanes folded to columns, moments to step to, and counts. Times in
// nanoseconds.
#include "viewer/panels/shardmap/shard_rows.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using enum traces::analysis::ShardState;
using testing::ElementsAre;
using testing::IsEmpty;
using traces::analysis::ShardStates;
using traces::analysis::UnitHistory;
using traces::store::RankIndex;

// Gathered from 10 to 20, used in compute until 50, freed; gathered again from 70 on, never freed.
UnitHistory history() {
    UnitHistory result;
    result.changes = {{10, gathering, true, 3},
                      {20, computing, true, 3},
                      {50, sharded, false, -1},
                      {70, gathering, true, 5}};
    result.allocated = {{5, 45}, {65, 100}};
    return result;
}

ShardStates two_units() {  // the second one is never gathered
    ShardStates states;
    states.units = {"a", "b"};
    states.bytes = {1000, -1};
    states.ranks = 1;
    states.histories = {history(), {}};
    return states;
}

TEST(StateLane, TimeInEachStateSumsToTheLength) {
    const UnitHistory unit = history();
    const StateLane lane(unit);
    EXPECT_THAT(lane.time_in(0, 100), ElementsAre(10 + 20, 10 + 30, 0, 30, 0, 0));
    EXPECT_THAT(lane.time_in(15, 25), ElementsAre(0, 5, 0, 5, 0, 0));
    EXPECT_THAT(lane.time_in(-20, 10), ElementsAre(30, 0, 0, 0, 0, 0));
    EXPECT_THAT(lane.time_in(200, 207), ElementsAre(0, 7, 0, 0, 0, 0));
}

TEST(StateLane, AColumnShowsTheStateWithTheMostTimeAndHowMuchIsNotSharded) {
    const UnitHistory unit = history();
    // [0, 25): 10 sharded, 10 gathering, 5 computing; [25, 50): computing; [50, 75): 20 sharded, 5 gathering.
    EXPECT_THAT(StateLane(unit).fold(0, 75, 3),
                ElementsAre(StateRun{0, 1, gathering, 0.6F}, StateRun{1, 1, computing, 1.0F},
                            StateRun{2, 1, gathering, 0.2F}));
}

TEST(StateLane, EqualColumnsAreOneRunAndShardedOnesNone) {
    const UnitHistory unit = history();
    EXPECT_THAT(StateLane(unit).fold(0, 70, 7),
                ElementsAre(StateRun{1, 1, gathering, 1}, StateRun{2, 3, computing, 1}));
    EXPECT_THAT(StateLane(unit).fold(51, 69, 5), IsEmpty());
}

// At every zoom, the shares of all columns sum to the time outside the sharded state.
TEST(StateLane, NoTimeIsLostAtAnyZoom) {
    const UnitHistory unit = history();
    for (const int columns : {1, 2, 5, 10, 20, 50}) {
        double active = 0;
        for (const StateRun& run : StateLane(unit).fold(0, 100, columns))
            active += static_cast<double>(run.share) * run.count * 100 / columns;
        EXPECT_NEAR(active, 40 + 30, 1e-4) << columns;
    }
}

TEST(StateLane, ShowsTheFirstStateOfAUnitThatNeverChanges) {
    UnitHistory always;
    always.at_first = {0, full, true, -1};
    EXPECT_THAT(StateLane(always).fold(0, 10, 2), ElementsAre(StateRun{0, 2, full, 1}));
    EXPECT_THAT(StateLane(UnitHistory()).fold(0, 10, 2), IsEmpty());
}

TEST(ShardMoments, AreSteppedThroughInOrder) {
    const std::vector<std::int64_t> times = change_times(two_units(), RankIndex(0));
    EXPECT_THAT(times, ElementsAre(10, 20, 50, 70));
    EXPECT_EQ(next_change(times, 10), 20);
    EXPECT_EQ(next_change(times, 11), 20);
    EXPECT_EQ(next_change(times, 70), std::nullopt);
    EXPECT_EQ(previous_change(times, 70), 50);
    EXPECT_EQ(previous_change(times, 10), std::nullopt);
    EXPECT_THAT(change_times(two_units(), RankIndex(7)), IsEmpty());
}

TEST(ShardCountsOf, ARankCountDeviceAndHostMemory) {
    const ShardCounts before = counts_at(two_units(), RankIndex(0), 7);  // allocated, not gathered yet
    EXPECT_EQ(before.allocated, 1);
    EXPECT_EQ(before.whole, 0);
    const ShardCounts used = counts_at(two_units(), RankIndex(0), 47);  // freed by the host, still in use
    EXPECT_EQ(used.allocated, 0);
    EXPECT_EQ(used.whole, 1);
    EXPECT_EQ(used.whole_bytes, 1000);
    EXPECT_THAT(used.units, ElementsAre(1, 0, 0, 1, 0, 0));
}

TEST(BusiestMoment, IsTheFirstWithTheMostUnitsAtWork) {
    ShardStates states = two_units();
    states.histories[1].changes = {{30, gathering, true, 1}, {40, sharded, false, -1}};
    const auto times = change_times(states, RankIndex(0));
    EXPECT_EQ(busiest_moment(states, RankIndex(0), times, 0, 100), 30);
    EXPECT_EQ(busiest_moment(states, RankIndex(0), times, 41, 49), 41) << "nothing changes there";
}

TEST(WholeParametersCurve, IsTheSumOfTheUnitsThatAreWhole) {
    ShardStates states = two_units();
    states.bytes[1] = 24;
    states.histories[1].changes = {{30, gathering, true, 1}, {50, sharded, false, -1}};
    std::vector<std::pair<std::int64_t, std::int64_t>> totals;
    for (const auto& point : whole_parameters_curve(states, RankIndex(0)))
        totals.emplace_back(point.time, point.total);
    using P = std::pair<std::int64_t, std::int64_t>;
    EXPECT_THAT(totals, ElementsAre(P{10, 1000}, P{30, 1024}, P{50, 24}, P{50, 0}, P{70, 1000}));
}

// --- which part of the time is shown ---

ShardView two_steps() {
    ShardView view;
    view.set_steps({{1, {100, 200}}, {2, {200, 400}}});
    return view;
}
constexpr model::TimeRange kAll{0, 500};

// The sentence of the last of `ranks` (places alone), which gather a unit among `gathered` ranks; 0: none.
std::string last_sentence(std::vector<traces::schema::RankRow> ranks, int gathered) {
    traces::RunBuilder run(0);
    int number = 0;
    for (traces::schema::RankRow& row : ranks) {
        row.rank = row.device = number++;
        row.global_pid = run.pid(row.rank);
        row.global_tid = run.tid(row.rank);
        run.sink().add(row);
        run.sink().add(
            traces::schema::ThreadRow{.global_tid = row.global_tid, .name = "rank", .rank = row.rank});
        if (gathered > 0) run.collective(row.rank, 0, 10, {.sequence = 0, .group_size = gathered, .unit = 0});
    }
    const auto trace = run.take();
    return ShardShares(*trace, {}).sentence(RankIndex(ranks.size() - 1));
}

TEST(ShardShares, SayWhatARankKeeps) {
    EXPECT_EQ(last_sentence({{.pipeline = 0}, {.pipeline = 1}}, 0),
              "Pipeline stage position 1 of 2 (from 0): it keeps all weights of its stages.");
    EXPECT_EQ(last_sentence({{.tensor = 0}, {.tensor = 1}}, 0),
              "Tensor slice 1 of 2 (from 0): it keeps 1/2 of each weight that its tensor group divides.");
    EXPECT_EQ(last_sentence({{.data = 0, .tensor = 0}, {.data = 1, .tensor = 1}}, 0),
              "Data replica 1 of 2 (from 0), Tensor slice 1 of 2 (from 0): it keeps 1/2 of each weight that "
              "its tensor group divides.");
    const std::vector<traces::schema::RankRow> context = {{.shard = 0, .context = 0},
                                                          {.shard = 0, .context = 1},
                                                          {.shard = 1, .context = 0},
                                                          {.shard = 1, .context = 1}};
    EXPECT_EQ(
        last_sentence(context, 4),
        "FSDP shard 1 of 2 (from 0), Context sequence part 1 of 2 (from 0): it keeps 1/4 of each weight, "
        "all of it while the unit is gathered.");
    EXPECT_EQ(
        last_sentence({{.shard = 0, .tensor = 0}, {.shard = 1, .tensor = 1}}, 2),
        "FSDP shard 1 of 2 (from 0), Tensor slice 1 of 2 (from 0): it keeps 1/4 of each weight that its "
        "tensor group divides, 1/2 while the unit is gathered.");
    EXPECT_EQ(last_sentence({{.shard = 0}, {.shard = 1}}, 2), "") << "FSDP alone divides the weights";
}

TEST(ShardView, ShowsTheStepOfTheCursorWithALittleAir) {
    ShardView view = two_steps();
    view.update(kAll, kAll, 250);
    EXPECT_EQ(view.range(), (model::TimeRange{200 - 5, 400 + 5})) << "a fiftieth and one";
    view.update(kAll, kAll, 450);  // after the last step
    EXPECT_EQ(view.range(), (model::TimeRange{400 - 3, 500}));
}

TEST(ShardView, ShowsTheTimelinesPartOrEverything) {
    ShardView view = two_steps();
    view.mode = ShardView::timeline;
    view.update(kAll, {300, 900}, 0);
    EXPECT_EQ(view.range(), (model::TimeRange{300, 500}));
    view.mode = ShardView::whole;
    view.update(kAll, {300, 900}, 0);
    EXPECT_EQ(view.range(), kAll);
}

TEST(ShardView, ZoomsAboutTheMouseAndStaysInside) {
    constexpr model::TimeRange kLong{0, 1000000};
    ShardView view;
    view.update(kLong, kLong, 0);
    view.zoom(kLong, 0.25, 1);
    EXPECT_EQ(view.mode, ShardView::own);
    EXPECT_EQ(view.range(), (model::TimeRange{50000, 850000})) << "250,000 stays at a quarter of 800,000";
    view.pan(kLong, 1);
    EXPECT_EQ(view.range(), (model::TimeRange{200000, 1000000}));
    for (int i = 0; i < 100; ++i) view.zoom(kLong, 0.5, 1);
    EXPECT_EQ(view.range().length(), 1000);
    for (int i = 0; i < 100; ++i) view.zoom(kLong, 0.5, -1);
    EXPECT_EQ(view.range(), kLong);
}

TEST(ShardView, FollowsACursorThatIsSteppedOutOfSight) {
    constexpr model::TimeRange kLong{0, 1000000};
    ShardView view;
    view.update(kLong, kLong, 0);
    view.zoom(kLong, 0, 3);
    view.follow(900000);
    EXPECT_LE(view.range().from, 900000);
    EXPECT_GT(view.range().to, 900000);
}

TEST(ShardView, FindsTheStepInTheMiddle) {
    ShardView view = two_steps();
    EXPECT_EQ(view.middle_step(kAll), (model::TimeRange{200, 400}));
    EXPECT_EQ(view.middle_step({0, 150}), (model::TimeRange{100, 150}));
    EXPECT_EQ(view.middle_step({410, 450}), (model::TimeRange{410, 450}));
    EXPECT_EQ(view.step_at(99), nullptr);
    ASSERT_NE(view.step_at(200), nullptr);
    EXPECT_EQ(view.step_at(200)->number, 2);
    EXPECT_EQ(view.step_at(400), nullptr);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
