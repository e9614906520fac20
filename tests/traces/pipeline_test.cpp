// The bubble of a pipeline, against schedules computed by hand. Times in nanoseconds.
#include "traces/analysis/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/pipeline/actions.h"
#include "traces/report/report.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kUnit = 1000;

TEST(PipelineActions, AreReadAsPyTorchWritesThem) {
    using Actions = std::vector<PipelineAction>;
    EXPECT_EQ(pipeline_actions("PP:0F3"), (Actions{{0, "F", 3}}));
    EXPECT_EQ(pipeline_actions("PP:12RECV_B40"), (Actions{{12, "RECV_B", 40}}));
    EXPECT_EQ(pipeline_actions("PP:3UNSHARD"), (Actions{{3, "UNSHARD", -1}}));
    EXPECT_EQ(pipeline_actions("PP:2BW5"), (Actions{{2, "B", 5}}));  // of older versions
    EXPECT_EQ(pipeline_actions("PP:(0F7;7B3)OVERLAP_F_B"), (Actions{{0, "F", 7}, {7, "B", 3}}));
    for (const char* other :
         {"0F3", "PP:", "PP:F3", "PP:0F", "PP:0f3", "PP:0F3x", "PP:0", "PP:(0F7;)OVERLAP_F_B", "PP:()",
          "PP:(", "PP:0F99999999999", "PP::fwd_send (stage 0)"})
        EXPECT_THAT(pipeline_actions(other), IsEmpty()) << other;
}

// GPipe, 2 ranks, 2 micro-batches, forward 1 unit, backward 2:
//
//   rank 0   F0 F1 .  .  .  B0-- B1--
//   rank 1   .  F0 F1 B0-- B1-- .  .
void gpipe(RunBuilder& run, std::int64_t first_rank, std::int64_t base) {
    const auto range = [&](int rank, std::int64_t start, std::int64_t end, const char* name) {
        run.range(static_cast<int>(first_rank) + rank, base + start * kUnit, base + end * kUnit, name);
    };
    range(0, 0, 1, "PP:0F0");
    range(0, 1, 2, "PP:0F1");
    range(0, 5, 7, "PP:0B0");
    range(0, 7, 9, "PP:0B1");
    range(1, 1, 2, "PP:1F0");
    range(1, 2, 3, "PP:1F1");
    range(1, 3, 5, "PP:1B0");
    range(1, 5, 7, "PP:1B1");
}

TEST(Pipeline, TheBubbleOfGPipeIsItsClosedForm) {
    RunBuilder run(2);
    gpipe(run, 0, 0);
    const PipelineReport report = pipeline_report(*run.take());
    EXPECT_DOUBLE_EQ(report.bubble_percent(), 100.0 / 3);  // (p - 1) / (m + p - 1)
    EXPECT_DOUBLE_EQ(report.mean_makespan(), 9 * kUnit);
    ASSERT_THAT(report.ranks, SizeIs(2));
    const PipelineRank &first = report.ranks[0], &second = report.ranks[1];
    EXPECT_EQ(first.makespan, 9 * kUnit);
    EXPECT_EQ(first.busy, 6 * kUnit);
    EXPECT_EQ(first.idle(), 3 * kUnit);  // (p - 1)(F + B)
    EXPECT_EQ(first.peer, 3 * kUnit);    // until stage 1 has the gradient
    EXPECT_EQ(second.idle(), 3 * kUnit);
    EXPECT_EQ(second.warm_up, 1 * kUnit);
    EXPECT_EQ(second.drain, 2 * kUnit);
    EXPECT_EQ(second.idle_in_span(), 0);
    EXPECT_EQ(first.peak_in_flight, 2);
    EXPECT_THAT(second.stages, ElementsAre(1));
    EXPECT_TRUE(first.on_host);
    EXPECT_EQ(first.planned, 0);
    ASSERT_THAT(report.stages, SizeIs(4));  // 2 stages, F and B each
    EXPECT_EQ(report.stages[0].kind, "B");
    EXPECT_EQ(report.stages[0].count, 2);
    EXPECT_EQ(report.stages[0].total, 4 * kUnit);
}

// Two pipelines beside each other, the second one 100 units later: neither waits for the other.
TEST(Pipeline, RanksOfAnotherReplicaAreAPipelineOfTheirOwn) {
    RunBuilder run(0);
    for (int rank = 0; rank < 4; ++rank) {
        run.sink().add(schema::RankRow{.rank = rank,
                                       .device = rank,
                                       .global_pid = run.pid(rank),
                                       .global_tid = run.tid(rank),
                                       .host = "",
                                       .device_name = "",
                                       .data = rank / 2,
                                       .pipeline = rank % 2,
                                       .cpus = {}});
        run.sink().add(schema::ThreadRow{.global_tid = run.tid(rank), .name = "rank", .rank = rank});
        run.step(rank, 0, 0, 200 * kUnit);
    }
    gpipe(run, 0, 0);
    gpipe(run, 2, 100 * kUnit);
    const PipelineReport report = pipeline_report(*run.take());
    ASSERT_THAT(report.ranks, SizeIs(4));
    for (const PipelineRank& rank : report.ranks) {
        EXPECT_EQ(rank.makespan, 9 * kUnit);
        EXPECT_EQ(rank.idle(), 3 * kUnit);
    }
    EXPECT_EQ(report.ranks[3].place, "data 1, pipeline 1");
}

// Rank 1 has computed another micro-batch by 400 and computes stage 1 of micro-batch 0 from 2000 on:
//
//   400 .. 1000    stage 0 computes what it waits for
//  1000 .. 1300    the transfer runs
//  1300 .. 1550    the host has not launched it
//  1550 .. 2000    nothing that is recorded explains it
TEST(Pipeline, AnIdleInstantHasTheFirstCauseThatHolds) {
    RunBuilder run(2);
    run.range(0, 0, 100, "PP:0F0");
    run.kernel(0, 0, 1000, 10);
    run.range(1, 0, 100, "PP:1F9");
    run.kernel(1, 0, 400, 10);
    run.collective(1, 400, 1300, {.operation = schema::Operation::recv, .group_size = 2, .launched = 200});
    run.range(1, 1500, 1600, "PP:1F0");
    run.kernel(1, 2000, 2500, 1550);
    const PipelineReport report = pipeline_report(*run.take());
    ASSERT_THAT(report.ranks, SizeIs(2));
    const PipelineRank& rank = report.ranks[1];
    EXPECT_FALSE(rank.on_host);
    EXPECT_EQ(rank.makespan, 2500);
    EXPECT_EQ(rank.busy, 400 + 500);
    EXPECT_EQ(rank.peer, 600);
    EXPECT_EQ(rank.communication, 300);
    EXPECT_EQ(rank.host, 250);
    EXPECT_EQ(rank.imbalance, 450);
    EXPECT_EQ(rank.warm_up + rank.drain, 0);
    EXPECT_EQ(report.ranks[0].drain, 1500);
}

// Autograd launches on a thread of its own, while the range is open on another.
TEST(Pipeline, TakesTheWorkThatAnotherThreadLaunchesDuringARange) {
    RunBuilder run;
    run.sink().add(schema::ThreadRow{.global_tid = run.other_tid(0), .name = "autograd", .rank = 0});
    run.range_on(run.other_tid(0), 0, 100, "PP:0B0");
    run.kernel(0, 50, 450, 20);
    run.kernel(0, 500, 600, 200);  // launched after the range
    const PipelineReport report = pipeline_report(*run.take());
    ASSERT_THAT(report.ranks, SizeIs(1));
    EXPECT_EQ(report.ranks[0].busy, 400);
    EXPECT_EQ(report.ranks[0].makespan, 400);
}

// Two chunks of stage 0 keep 100 and 50 bytes; what a forward frees again, other categories and memory that
// is allocated outside forwards do not count.
TEST(Pipeline, AddsUpWhatTheChunksInFlightKeep) {
    const auto memory = [](bool categories) {
        RunBuilder run;
        const TestMemory kept{.category = categories ? schema::MemoryCategory::activations
                                                     : schema::MemoryCategory::other};
        const TestMemory gathered{.category = schema::MemoryCategory::unsharded_parameters};
        run.range(0, 0, 10, "PP:0F0");
        run.range(0, 10, 20, "PP:0F1");
        run.range(0, 20, 30, "PP:0B0");
        run.range(0, 30, 40, "PP:0F2");
        run.range(0, 40, 50, "PP:0B1");
        run.allocate(0, 2, 1, 100, kept);
        run.allocate(0, 4, 2, 1000, kept);
        run.free(0, 6, 2, 1000, kept);
        run.allocate(0, 12, 3, 50, kept);
        run.allocate(0, 13, 4, 7000, gathered);
        run.allocate(0, 22, 5, 300, kept);
        run.free(0, 28, 1, 100, kept);
        run.allocate(0, 32, 6, 20, kept);
        return pipeline_report(*run.take()).memory;
    };
    const std::vector<StageMemory> stages = memory(true);
    ASSERT_THAT(stages, SizeIs(1));
    EXPECT_EQ(stages[0].stage, 0);
    EXPECT_EQ(stages[0].chunks, 2);
    EXPECT_EQ(stages[0].bytes, 150);
    EXPECT_EQ(stages[0].chunks_then, 2);
    EXPECT_EQ(memory(false)[0].bytes, 150 + 7000) << "categories are unknown";
}

// The free between the two allocations at one address was lost: the first one is gone all the same.
TEST(Pipeline, KeepsOneAllocationAtAnAddressWhereAFreeWasLost) {
    const auto kept = [](const char* second) {
        RunBuilder run;
        run.range(0, 0, 10, "PP:0F0");
        run.range(0, 10, 20, second);
        run.range(0, 20, 30, "PP:0F2");
        run.allocate(0, 2, 1, 100);
        run.allocate(0, 12, 1, 30);
        run.allocate(0, 22, 2, 50);
        const PipelineReport report = pipeline_report(*run.take());
        EXPECT_THAT(report.memory, SizeIs(1));
        return report.memory[0].bytes;
    };
    EXPECT_EQ(kept("PP:0F1"), 100);
    EXPECT_EQ(kept("PP:0B0"), 100);
}

TEST(Pipeline, TellsWhetherRanksFollowTheirSchedule) {
    RunBuilder run(2);
    gpipe(run, 0, 0);
    const auto plan = [&](int rank, int position, const char* kind, int micro_batch) {
        run.sink().add(schema::ScheduleRow{
            .rank = rank, .position = position, .stage = rank, .kind = kind, .micro_batch = micro_batch});
    };
    for (int rank = 0; rank < 2; ++rank) {
        plan(rank, 4, "B", 1);  // in any order in the file
        plan(rank, 0, rank == 0 ? "SEND_F" : "RECV_F", 0);
        plan(rank, 1, "F", 0);
        plan(rank, rank == 0 ? 2 : 3, "F", 1);  // rank 1 plans F0 B0 F1 B1
        plan(rank, rank == 0 ? 3 : 2, "B", 0);
    }
    const PipelineReport report = pipeline_report(*run.take());
    EXPECT_EQ(report.ranks[0].planned, 4);
    EXPECT_EQ(report.ranks[0].other_orders, 0);
    EXPECT_EQ(report.ranks[1].other_orders, 1);
    EXPECT_THAT(render(report, report::Format::table),
                HasSubstr("1 step of a rank did not compute in the planned order"));
}

// The causes of AnIdleInstantHasTheFirstCauseThatHolds, as spans; with the busy time they cover the makespan.
TEST(PipelineTimeline, SplitsEveryGapIntoSpansByCause) {
    RunBuilder run(2);
    run.range(0, 0, 100, "PP:0F0");
    run.kernel(0, 0, 1000, 10);
    run.range(1, 0, 100, "PP:1F9");
    run.kernel(1, 0, 400, 10);
    run.collective(1, 400, 1100, {.operation = schema::Operation::recv, .group_size = 2, .launched = 200});
    run.collective(1, 1200, 1300, {.operation = schema::Operation::recv, .group_size = 2, .launched = 200});
    run.range(1, 1500, 1600, "PP:1F0");
    run.kernel(1, 2000, 2500, 1550);
    const PipelineTimeline timeline = pipeline_timeline(*run.take());
    ASSERT_THAT(timeline.steps, SizeIs(1));
    const PipelineRow& row = timeline.steps[0].rows[1];
    EXPECT_THAT(
        row.idle,
        ElementsAre(IdleSpan{{400, 1000}, IdleCause::peer}, IdleSpan{{1000, 1100}, IdleCause::transfer},
                    IdleSpan{{1100, 1200}, IdleCause::host}, IdleSpan{{1200, 1300}, IdleCause::transfer},
                    IdleSpan{{1300, 1550}, IdleCause::host}, IdleSpan{{1550, 2000}, IdleCause::imbalance}));
    EXPECT_EQ(timeline.steps[0].rows[0].idle, (std::vector{IdleSpan{{1000, 2500}, IdleCause::drain}}));
    EXPECT_EQ(row.cells[1].cell.event, 4);  // its kernel, the fifth device event by start
}

void plan_gpipe(RunBuilder& run) {
    int position = 0;
    for (const auto& [kind, micro_batch] : {std::pair("F", 0), {"F", 1}, {"B", 0}, {"B", 1}}) {
        for (int rank = 0; rank < 2; ++rank)
            run.sink().add(schema::ScheduleRow{
                .rank = rank, .position = position, .stage = rank, .kind = kind, .micro_batch = micro_batch});
        ++position;
    }
}

// Rank 1 begins every computation half a unit late: the replayed plan is GPipe without the delay.
TEST(PipelineTimeline, ReplaysThePlanAtMeanTimesWithoutDelays) {
    RunBuilder run(2);
    const auto range = [&](int rank, double start, double end, const char* name) {
        run.range(rank, static_cast<std::int64_t>(start * kUnit), static_cast<std::int64_t>(end * kUnit),
                  name);
    };
    range(0, 0, 1, "PP:0F0");
    range(0, 1, 2, "PP:0F1");
    range(1, 1.5, 2.5, "PP:1F0");
    range(1, 2.5, 3.5, "PP:1F1");
    range(1, 3.5, 5.5, "PP:1B0");
    range(1, 5.5, 7.5, "PP:1B1");
    range(0, 6, 8, "PP:0B0");
    range(0, 8, 10, "PP:0B1");
    plan_gpipe(run);
    const PipelineTimeline timeline = pipeline_timeline(*run.take());
    ASSERT_THAT(timeline.steps, SizeIs(1));
    const PipelineStep& step = timeline.steps[0];
    EXPECT_EQ(step.makespan.length(), 10 * kUnit);
    EXPECT_EQ(step.planned_ns, 9 * kUnit);
    ASSERT_THAT(step.rows[0].planned, SizeIs(4));
    EXPECT_EQ(step.rows[1].planned[0].time, (Interval{1 * kUnit, 2 * kUnit}));
    EXPECT_EQ(step.rows[0].planned[2].time, (Interval{5 * kUnit, 7 * kUnit}));
    EXPECT_EQ(step.rows[1].cells[3].planned, 3);
    EXPECT_TRUE(step.rows[0].in_planned_order);
}

TEST(PipelineTimeline, ReplaysAPlanBeforeTheTracesZero) {
    RunBuilder run(1);
    run.range(0, -100, -60, "PP:0F0");
    run.range(0, -60, -20, "PP:0B0");
    int position = 0;
    for (const char* kind : {"F", "B"})
        run.sink().add(schema::ScheduleRow{
            .rank = 0, .position = position++, .stage = 0, .kind = kind, .micro_batch = 0});
    EXPECT_EQ(pipeline_timeline(*run.take()).steps[0].planned_ns, 80);
}

TEST(PipelineTimeline, RunsPlannedActionsTogetherAndReplaysNothingThatWaitsForever) {
    RunBuilder run(1);
    run.range(0, 0, 10, "PP:0F0");
    run.range(0, 10, 30, "PP:(0F1;0B0)OVERLAP_F_B");
    run.range(0, 30, 40, "PP:0B1");
    const auto plan = [&](int position, int stage, const char* kind, int micro_batch,
                          bool with_next = false) {
        run.sink().add(schema::ScheduleRow{.rank = 0,
                                           .position = position,
                                           .stage = stage,
                                           .kind = kind,
                                           .micro_batch = micro_batch,
                                           .with_next = with_next});
    };
    plan(0, 0, "F", 0);
    plan(1, 0, "F", 1, true);
    plan(2, 0, "B", 0);
    plan(3, 0, "B", 1);
    auto trace = run.take();
    const PipelineTimeline timeline = pipeline_timeline(*trace);
    ASSERT_THAT(timeline.steps[0].rows[0].planned, SizeIs(3));
    EXPECT_EQ(timeline.steps[0].rows[0].planned[1].time, (Interval{10, 30}));
    EXPECT_EQ(timeline.steps[0].planned_ns, 40);
    // Stage 1 on the same rank after its backward: 0B0 waits for 1B0, which comes behind it.
    trace->schedule.push_back(
        {.rank = 0, .position = 4, .stage = 1, .kind = "B", .micro_batch = 0, .with_next = false});
    const PipelineTimeline stuck = pipeline_timeline(*trace);
    EXPECT_EQ(stuck.steps[0].planned_ns, 0);
    EXPECT_EQ(stuck.steps[0].rows[0].planned[0].time, (Interval{0, 0}));
}

TEST(Pipeline, PrintsItsRowsAndSaysWhereThereAreNone) {
    RunBuilder run(2);
    gpipe(run, 0, 0);
    const PipelineReport report = pipeline_report(*run.take());
    const std::string text = render(report, report::Format::table);
    EXPECT_THAT(text, HasSubstr("Pipeline of 2 ranks: makespan 9.0 µs; bubble 33.33 % of ranks x makespan, "
                                "16.67 % between the ranks' first and last work"));
    EXPECT_THAT(render(report, report::Format::json), HasSubstr("\"peer_us\":3.0"));
    EXPECT_THAT(render(report, report::Format::csv), HasSubstr("rank,place,stages,"));
    const std::string none = render(pipeline_report(*RunBuilder().take()), report::Format::table);
    EXPECT_THAT(none, HasSubstr("This trace has no actions of a pipeline"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
