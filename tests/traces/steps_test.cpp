// Steps: window, split, device work and loss of each; the slowest step, and the slowest rank.
#include "traces/analysis/time/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/path/path_names.h"
#include "traces/report/report.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(Steps, HaveEveryKnownFigure) {
    RunBuilder run;
    const std::int64_t lengths[] = {100, 140, 120};
    std::int64_t start = 0;
    for (int s = 0; s < 3; ++s) {
        run.step(0, s, start, start + lengths[s]);
        run.kernel(0, start + 10, start + 60, start + 1);
        run.kernel(0, start + 40, start + 80, start + 2, 8);
        start += lengths[s];
    }
    run.sink().add(schema::LossRow{.step = 1, .loss = 0.5});
    const auto trace = run.take();
    const RankStepDetails rank = steps_report(*trace).ranks[0];
    ASSERT_THAT(rank.steps, SizeIs(3));
    const StepDetail& step = rank.steps[1];
    EXPECT_EQ(step.summary.number, 1);
    EXPECT_EQ(step.window(), 140);
    EXPECT_EQ(step.host_start, 100);
    EXPECT_EQ(step.host_end, 240);
    EXPECT_EQ(step.device_events, 2);
    EXPECT_EQ(step.device_busy, 70);  // 10..80
    EXPECT_EQ(step.summary.ns[0], 70);
    ASSERT_TRUE(step.loss.has_value());
    EXPECT_DOUBLE_EQ(*step.loss, 0.5);
    EXPECT_FALSE(rank.steps[0].loss.has_value());
    EXPECT_EQ(rank.slowest, 1);
    EXPECT_DOUBLE_EQ(rank.median_window, 130) << "of the windows after the first";
}

TEST(Steps, CountOnlyTheSelectedTime) {
    RunBuilder run;
    run.step(0, 0, 0, 100);
    run.kernel(0, 10, 40, 1);
    run.kernel(0, 40, 90, 2);
    run.step(0, 1, 100, 200);
    run.kernel(0, 110, 150, 101);
    run.kernel(0, 150, 160, 102);  // starts after the end of the step
    const auto trace = run.take();
    const RankStepDetails rank = steps_report(*trace, {.from_ns = 30, .to_ns = 120}).ranks[0];
    ASSERT_THAT(rank.steps, SizeIs(2));
    EXPECT_EQ(rank.steps[0].device_events, 1);  // the other one started before
    EXPECT_EQ(rank.steps[0].device_busy, 60);   // 30..90
    EXPECT_EQ(rank.steps[0].host_start, 30);
    EXPECT_EQ(rank.steps[0].host_end, 100);
    EXPECT_EQ(rank.steps[1].device_events, 1);
    EXPECT_EQ(rank.steps[1].host_end, 120);
}

// The device waits from 40 to 80 for a read of a file.
TEST(Steps, DoNotCountFilesAsTheDevices) {
    RunBuilder run;
    run.step(0, 0, 0, 100);
    run.kernel(0, 10, 40, 1);
    run.file(0, schema::kCopyDiskToHost, 40, 80, 2);
    run.kernel(0, 80, 100, 3);
    const auto trace = run.take();
    const StepDetail step = steps_report(*trace).ranks[0].steps.at(0);
    EXPECT_EQ(step.device_busy, 30 + 20);
    EXPECT_EQ(step.summary.ns[static_cast<std::size_t>(TimeCategory::memcpy)], 0);
}

TEST(Steps, NameTheSlowestRankOfEach) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        run.step(rank, 0, 0, 100 + 50 * rank);
        run.step(rank, 1, 200, 320 - 20 * rank);
    }
    const auto trace = run.take();
    const StepsReport report = steps_report(*trace);
    ASSERT_THAT(report.across, SizeIs(2));
    EXPECT_EQ(report.across[0].slowest_rank, 1);
    EXPECT_EQ(report.across[0].longest, 150);
    EXPECT_EQ(report.across[0].shortest, 100);
    EXPECT_EQ(report.across[1].slowest_rank, 0);
    EXPECT_THAT(steps_report(*trace, {.rank = 0}).across, IsEmpty());
    const StepsReport one = steps_report(*trace, {.rank = 1, .first_step = 1, .last_step = 1});
    ASSERT_THAT(one.ranks[0].steps, SizeIs(1));
    EXPECT_EQ(one.ranks[0].slowest, -1) << "one step is not slower than another";
}

// Of windows of 10,000 and 10,004 ns neither is the slowest (1.000 times); of 10,000 and 10,006 one is.
TEST(Steps, NameNoSlowestAmongEqualSteps) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        run.step(rank, 0, 0, 10'000 + 4 * rank);
        run.step(rank, 1, 20'000, 30'000 + 6 * rank);
    }
    const auto trace = run.take();
    const StepsReport report = steps_report(*trace);
    ASSERT_THAT(report.across, SizeIs(2));
    EXPECT_EQ(report.across[0].slowest_rank, -1);
    EXPECT_EQ(report.across[1].slowest_rank, 1);
    EXPECT_EQ(report.ranks[0].slowest, -1) << "both of its steps take 10,000 ns";
    EXPECT_EQ(report.ranks[1].slowest, -1) << "10,004 and 10,006 ns";
    const std::string table = render(report, report::Format::table);
    EXPECT_THAT(table, Not(HasSubstr("slowest")));
    EXPECT_THAT(table, HasSubstr("   0             -"));
    EXPECT_THAT(render(report, report::Format::json),
                AllOf(HasSubstr("\"slowest_step\":null"), HasSubstr("{\"step\":0,\"slowest_rank\":null")));
}

// The host is done with a step after 100 us, its kernel at 250 us: the window of the first step is 250 us,
// and the second one's begins there.
TEST(Steps, ShowTheHostsTimeAndTheWindowSideBySide) {
    RunBuilder run;
    run.step(0, 0, 0, 100'000);
    run.kernel(0, 50'000, 250'000, 20'000);
    run.step(0, 1, 100'000, 220'000);
    run.kernel(0, 260'000, 430'000, 150'000);
    const auto trace = run.take();
    const StepsReport report = steps_report(*trace);
    const std::string table = render(report, report::Format::table);
    EXPECT_THAT(table, HasSubstr("       Host  Window"));
    EXPECT_THAT(table, HasSubstr("   0  100.0   250.0"));
    EXPECT_THAT(table, HasSubstr("   1  120.0   180.0")) << "250 µs to 430 µs";
    EXPECT_THAT(render(report, report::Format::csv),
                AllOf(HasSubstr("rank,step,start_ns,us,host_us,"), HasSubstr("0,0,0,250,100,"),
                      HasSubstr("0,1,250000,180,120,")));
}

TEST(FindStep, IsTheFirstOfItsNumber) {
    const std::vector<StepWindow> rising = {{.number = 4}, {.number = 5}, {.number = 5}, {.number = 9}};
    EXPECT_EQ(find_step(rising, 4), &rising[0]);
    EXPECT_EQ(find_step(rising, 5), &rising[1]);
    EXPECT_EQ(find_step(rising, 9), &rising[3]);
    for (const std::int64_t absent : {3, 6, 10}) EXPECT_EQ(find_step(rising, absent), nullptr) << absent;
    EXPECT_EQ(find_step({}, 4), nullptr);
    // The job restarted its count.
    const std::vector<StepWindow> again = {{.number = 7}, {.number = 8}, {.number = 0}, {.number = 1}};
    for (const StepWindow& step : again) EXPECT_EQ(find_step(again, step.number), &step);
}

// 100,000 nested ranges, of which the 50,000th from outside is a module: it is found from each range within
// it, and in linear time.
TEST(ModuleRanges, AreFoundHoweverDeeplyARangeIsNested) {
    constexpr std::int32_t kDeep = 100'000, kModule = kDeep / 2;
    store::Trace trace;
    for (std::int32_t i = 0; i < kDeep; ++i) {
        trace.ranges.parent.push_back(i - 1);
        trace.ranges.module.push_back(-1);
        trace.ranges.kind.push_back(i == kModule ? store::RangeKind::module : store::RangeKind::operation);
    }
    ModuleRanges modules(trace);
    for (std::int32_t i = kDeep - 1; i >= 0; --i) ASSERT_EQ(modules.of(i), i >= kModule ? kModule : -1) << i;
    ModuleRanges outwards(trace);
    for (std::int32_t i = 0; i < kDeep; ++i) ASSERT_EQ(outwards.of(i), i >= kModule ? kModule : -1) << i;
    EXPECT_EQ(modules.of(-1), -1);
}

TEST(Steps, LeaveOutWorkThatWasQueuedBeforeTheRecordingBegan) {
    RunBuilder run;
    for (int s = 0; s < 3; ++s) {
        const std::int64_t start = s * std::int64_t{1000};
        run.step(0, s, start, start + 100);
        run.kernel(0, 3000 + start, 4000 + start, start + 10);  // the device is 3000 behind
    }
    for (int k = 0; k < 30; ++k) run.kernel(0, k * std::int64_t{100}, (k + 1) * std::int64_t{100}, {});
    const auto trace = run.take();
    EXPECT_EQ(count_backlog(*trace), 30);
    const RankStepDetails rank = steps_report(*trace).ranks[0];
    ASSERT_THAT(rank.steps, SizeIs(3));
    for (const StepDetail& step : rank.steps) {
        EXPECT_EQ(step.window(), 1000) << step.summary.number;
        EXPECT_EQ(step.device_events, 1) << step.summary.number;
    }
    EXPECT_EQ(rank.steps[0].summary.window_start, 3000);  // when the backlog was finished
}

TEST(Steps, KeepWorkWithoutALaunchThatRunsAmongTheirOwn) {
    RunBuilder run;
    run.step(0, 0, 0, 1000);
    run.kernel(0, 100, 200, 10);
    run.kernel(0, 150, 250, {}, 8);  // does not start before the first kernel that was launched in the step
    run.kernel(0, 50, 150, {}, 9);   // started before that kernel, but did not end before it
    const auto trace = run.take();
    EXPECT_EQ(count_backlog(*trace), 0);
    EXPECT_EQ(steps_report(*trace).ranks[0].steps.at(0).device_events, 3);
}

TEST(Steps, ContainTheWorkThatStartsInThemIfThereAreNoLaunches) {
    RunBuilder run;
    run.step(0, 0, 0, 100);
    run.step(0, 1, 100, 200);
    run.kernel(0, 10, 60, {});
    run.kernel(0, 110, 160, {});
    const auto trace = run.take();
    const RankStepDetails rank = steps_report(*trace).ranks[0];
    ASSERT_THAT(rank.steps, SizeIs(2));
    EXPECT_EQ(rank.steps[0].device_events, 1);
    EXPECT_EQ(rank.steps[1].device_events, 1);
}

TEST(Steps, OfOneNumberOnSeveralThreadsOfARankAreJoined) {
    RunBuilder run;
    run.range(0, 0, 500, "ProfilerStep#1");
    run.range_on(RunBuilder::other_tid(0), 600, 600, "ProfilerStep#1");
    run.sink().add(schema::ThreadRow{.global_tid = RunBuilder::other_tid(0), .name = "autograd", .rank = 0});
    const auto trace = run.take();
    ASSERT_THAT(trace->steps, SizeIs(1));
    EXPECT_EQ(trace->steps[0].end - trace->steps[0].start, 500);
}

TEST(Steps, OfAProcessBelongToEachOfItsDevices) {
    // As in an export of Nsight Systems: two devices of one process, with one thread that launches on both.
    store::ColumnSink sink;
    for (int r = 0; r < 2; ++r) {
        sink.add(schema::RankRow{
            .rank = r, .device = r, .global_pid = RunBuilder::pid(0), .host = {}, .device_name = {}});
        const std::int64_t at = 10 + 10 * std::int64_t{r};
        sink.add(schema::RuntimeRow{.start = at,
                                    .end = at + 1,
                                    .global_tid = RunBuilder::tid(0),
                                    .correlation = r + 1,
                                    .name = sink.intern("cudaLaunchKernel")});
        sink.add(schema::KernelRow{.start = 50,
                                   .end = 450,
                                   .device = r,
                                   .stream = 7,
                                   .correlation = r + 1,
                                   .global_pid = RunBuilder::pid(0),
                                   .short_name = sink.intern("gemm")});
    }
    sink.add(schema::RangeRow{
        .start = 0, .end = 500, .text = sink.intern("ProfilerStep#1"), .global_tid = RunBuilder::tid(0)});
    const auto trace = sink.take();
    const StepsReport report = steps_report(*trace);
    ASSERT_THAT(report.ranks, SizeIs(2));
    for (const RankStepDetails& rank : report.ranks) {
        ASSERT_THAT(rank.steps, SizeIs(1)) << rank.rank;
        EXPECT_EQ(rank.steps[0].summary.ns[0], 400) << rank.rank;
        EXPECT_EQ(rank.steps[0].device_events, 1) << rank.rank;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
