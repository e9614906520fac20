// Schedules with times: closed forms next to the replay, wherever they are said to hold, and the parts of
// idle time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/pipeline_testing.h"
#include "trainer/pipeline/compare.h"
#include "trainer/pipeline/csv.h"
#include "trainer/pipeline/lower.h"
#include "trainer/pipeline/replay.h"

namespace shardscope::trainer::pipeline {
namespace TEST_FILE {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Costs kUnit = {};
constexpr Costs kManyCosts[] = {{1, 1, 1}, {2, 2, 1}, {1, 2, 2}, {3, 1, 2}, {1, 1, 3}, {4, 2, 1}};

struct TestPoint {
    const char* name;
    int m, v;
    std::int64_t unit, twos;  // makespans for p = 4 and F, I, W = 1, 1, 1 and 2, 2, 1
};
constexpr TestPoint kTestPoints[] = {{"gpipe", 8, 1, 33, 55},          {"1f1b", 8, 1, 33, 55},
                                     {"interleaved", 8, 2, 57, 95},    {"interleaved", 8, 3, 81, 135},
                                     {"looped_bfs", 8, 2, 57, 95},     {"zb_h1", 8, 1, 27, 49},
                                     {"interleaved_zb", 8, 2, 51, 89}, {"interleaved_zb", 8, 3, 75, 129},
                                     {"zb_v", 8, 2, 51, 86},           {"dualpipe_v", 8, 2, 54, 95},
                                     {"dualpipe_v", 10, 2, 66, 115}};

TEST(PipelineReplay, GivesTheKnownMakespans) {
    for (const TestPoint& point : kTestPoints) {
        const Schedule schedule = made(point.name, 4, point.m, point.v);
        EXPECT_EQ(replay(schedule, kUnit).makespan, point.unit) << point.name;
        EXPECT_EQ(replay(schedule, {2, 2, 1}).makespan, point.twos) << point.name;
    }
}

// The figures of the published table: DualPipeV, 4 ranks, 10 micro-batches.
TEST(PipelineReplay, OfDualPipeVIdlesSixUnitsOnEachRank) {
    const ScheduleReplay result = replay(made("dualpipe_v", 4, 10), kUnit);
    EXPECT_EQ(result.makespan, 66);
    for (const ReplayedRank& rank : result.ranks) {
        EXPECT_EQ(rank.idle(), 6);
        EXPECT_EQ(rank.peak_in_flight, 9);
    }
    EXPECT_EQ(text_of(result.bubble()), "1/11");
}

TEST(PipelineReplay, AgreesWithTheClosedFormsWhereTheyHold) {
    std::map<std::string_view, int> compared;
    for (const ScheduleKind& kind : schedule_kinds()) {
        for_each_shape(kind, [&](const Shape& shape) {
            const Schedule schedule = make_schedule(kind, shape);
            for (const Costs& costs : kManyCosts) {
                if (!kind.form.holds(shape, costs)) continue;
                const ScheduleReplay result = replay(schedule, costs);
                const std::int64_t idle = kind.form.idle_ticks(shape, costs);
                const std::int64_t busy =
                    std::int64_t{shape.micro_batches} * shape.chunks * (costs.forward + costs.backward());
                for (int r = 0; r < shape.ranks; ++r) {
                    const ReplayedRank& own = result.ranks[static_cast<std::size_t>(r)];
                    ASSERT_EQ(own.idle(), idle) << to_string(kind, shape) << " rank " << r;
                    ASSERT_EQ(own.busy, busy);
                    ASSERT_EQ(own.peak_in_flight, kind.form.peak_chunks(shape, r))
                        << to_string(kind, shape) << " rank " << r;
                }
                ASSERT_EQ(result.bubble(), Fraction::of(idle, busy + idle));
                ++compared[kind.name];
            }
        });
    }
    for (const ScheduleKind& kind : schedule_kinds()) EXPECT_GE(compared[kind.name], 5) << kind.name;
}

TEST(PipelineReplay, SumsOfAnyScheduleAreWhole) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        for_each_shape(kind, [&](const Shape& shape) {
            const Costs costs{3, 1, 2, 1};
            const Schedule schedule = make_schedule(kind, shape);
            const ScheduleReplay result = replay(schedule, costs);
            for (const ReplayedRank& rank : result.ranks) {
                EXPECT_EQ(rank.busy + rank.idle(), result.makespan);
                EXPECT_GE(std::min({rank.warm_up, rank.peer, rank.communication, rank.drain}), 0);
                std::int64_t free = 0;
                for (const ReplayedCell& cell : rank.cells) {
                    EXPECT_GE(cell.begin, free);
                    free = cell.end;
                }
            }
            // Transfers are not drawn but take their time; a lowered schedule is the same one.
            EXPECT_EQ(replay(lower(schedule), costs).makespan, result.makespan) << to_string(kind, shape);
        });
    }
}

// 1F1B, 2 ranks, 2 micro-batches, F = 1, B = 2, and 3 for each transfer:
// rank 0   F0 F1 . . . . . . B0 B0 . B1 B1      waits 8 units for B0: until 7 for rank 1, until 10 for the
// transfer rank 1   . . . . F0 B0 B0 F1 B1 B1
TEST(PipelineReplay, DividesIdleTimeByItsCause) {
    const ScheduleReplay result = replay(made("1f1b", 2, 2), {1, 1, 1, 3});
    EXPECT_EQ(result.makespan, 15);
    const ReplayedRank &first = result.ranks[0], &last = result.ranks[1];
    EXPECT_EQ(first.warm_up, 0);
    EXPECT_EQ(first.peer, 5);           // 1F0's end at 5 and 1B0's at 7, from 2 on
    EXPECT_EQ(first.communication, 4);  // 7 to 10, and 12 to 13 for the gradient that 1B1 ended at 10
    EXPECT_EQ(first.drain, 0);
    EXPECT_EQ(last.warm_up, 4);
    EXPECT_EQ(last.peer + last.communication, 0);
    EXPECT_EQ(last.drain, 5);
    EXPECT_EQ(first.idle_in_span(), 9);
    EXPECT_EQ(last.idle_in_span(), 0);
}

TEST(PipelineReplay, OfZbVHasNoIdleTimeWithinARanksSpan) {
    const ScheduleReplay result = replay(made("zb_v", 4, 8), kUnit);
    for (const ReplayedRank& rank : result.ranks) {
        EXPECT_EQ(rank.idle(), 3);
        EXPECT_EQ(rank.idle_in_span(), 0);
    }
    // Unequal costs: 2 (p - 1 - r) in the span for 2, 2, 1, and r for 1, 2, 2.
    const ScheduleReplay twos = replay(made("zb_v", 4, 8), {2, 2, 1}),
                         halves = replay(made("zb_v", 4, 8), {1, 2, 2});
    for (int r = 0; r < 4; ++r) {
        EXPECT_EQ(twos.ranks[static_cast<std::size_t>(r)].idle(), 6);
        EXPECT_EQ(twos.ranks[static_cast<std::size_t>(r)].idle_in_span(), 2 * (3 - r));
        EXPECT_EQ(halves.ranks[static_cast<std::size_t>(r)].idle_in_span(), r);
    }
}

// Where DualPipeV's formula is said not to hold, it does not.
TEST(PipelineReplay, ShowsWhereNoFormulaHolds) {
    const Shape shape{2, 4, 2};
    const Costs costs{3, 1, 2};
    const ScheduleKind& kind = *find_schedule("dualpipe_v");
    EXPECT_FALSE(kind.form.holds(shape, costs));
    EXPECT_EQ(replay(make_schedule(kind, shape), costs).most_idle(), 6);
    EXPECT_EQ(kind.form.idle_ticks(shape, costs), 3);
}

TEST(PipelineCosts, AreExactInOneUnit) {
    const Costs costs = parse_costs("1.5,4/3,1", "0.25");
    EXPECT_EQ(costs.scale, 12);
    EXPECT_THAT((std::vector{costs.forward, costs.input, costs.weight, costs.transfer}),
                ElementsAre(18, 16, 12, 3));
    EXPECT_EQ(text_of(costs.units(costs.backward())), "7/3");
    EXPECT_EQ(text_of(Fraction::of(4, 2)), "2");
}

TEST(PipelineCosts, AreRefusedIfTheyAreNotTimes) {
    const auto saying = [](const char* costs, const char* transfer) {
        return refused([&] { parse_costs(costs, transfer); });
    };
    for (const char* wrong : {"", "1", "1,1", "1,1,1,1", "1,1,1,", ",1,1", "1,0,1", "1,-1,1", "1,x,1",
                              "1,1/0,1", "1e3,1,1", "1,1,.5", "1,1,99999999"})
        EXPECT_THAT(saying(wrong, "0"), HasSubstr("is not three times above 0")) << wrong;
    for (const char* wrong : {"", "-1", "x", "1/0", "0.1234567"})
        EXPECT_THAT(saying("1,1,1", wrong), HasSubstr("--transfer: ")) << wrong;
    EXPECT_THAT(saying("0.000001,999983/999979,1", "0"), HasSubstr("have no common unit"));
    EXPECT_EQ(saying("1,1,1", "1/3"), "accepted");
}

// Rows with other numbers of chunks do the same work: 4 ranks, 8 micro-batches, F = I = W = 1 for all of a
// rank's stages.
TEST(PipelineComparison, GivesEveryRankTheSameWork) {
    std::map<std::string_view, ComparedSchedule> rows;
    for (const ComparedSchedule& row : compare_schedules({4, 8, 1}, kUnit, 2)) {
        EXPECT_EQ(row.refused, "") << row.kind->name;
        rows[row.kind->name] = row;
        const double busy = row.makespan.value() * (1 - row.bubble.value());
        EXPECT_NEAR(busy, 24, 1e-9) << row.kind->name;
    }
    EXPECT_EQ(text_of(rows["1f1b"].makespan), "33");
    EXPECT_EQ(text_of(rows["interleaved"].makespan), "57/2");
    EXPECT_EQ(text_of(rows["zb_v"].makespan), "51/2");
    EXPECT_EQ(text_of(rows["zb_v"].idle), "3/2");
    EXPECT_EQ(text_of(rows["zb_v"].peak_micro_batches), "4");
    EXPECT_EQ(rows["1f1b"].messages, 2 * 3 * 8);
    EXPECT_EQ(rows["interleaved"].messages, 2 * 7 * 8);
    EXPECT_EQ(rows["zb_v"].messages, 2 * 6 * 8);  // the turn of the V is on one rank
    // The costs of half a rank's work in chunks of a schedule that has two.
    for (const ComparedSchedule& row : compare_schedules({4, 8, 2}, kUnit, 2)) rows[row.kind->name] = row;
    EXPECT_EQ(text_of(rows["interleaved"].makespan), "57");
    EXPECT_EQ(text_of(rows["1f1b"].makespan), "66");
}

TEST(PipelineComparison, KeepsTheReasonOfWhatCannotBe) {
    for (const ComparedSchedule& row : compare_schedules({4, 7, 1}, kUnit, 2))
        EXPECT_EQ(row.refused.empty(), row.kind->name != "dualpipe_v") << row.refused;
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::pipeline
