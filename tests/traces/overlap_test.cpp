// Overlap and the temporal breakdown: unions inside windows, and parts that sum to the whole.
#include "traces/analysis/time/overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/time/temporal.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::SizeIs;

// Compute 100..200 and 250..300 (two streams that overlap), communication 180..280, a copy 290..320.
void device_work(RunBuilder& run, int rank, std::int64_t at) {
    run.kernel(rank, at + 100, at + 160, at + 10);
    run.kernel(rank, at + 150, at + 200, at + 20, 8);
    run.kernel(rank, at + 250, at + 300, at + 30);
    run.collective(rank, at + 180, at + 280, {.launched = at + 25});
    run.memcpy(rank, at + 290, at + 320, at + 40);
}

TEST(Overlap, PartsAreTheUnionsOfComputeAndCommunicationInTheWindow) {
    RunBuilder run;
    run.step(0, 0, 0, 400);
    device_work(run, 0, 0);
    const auto trace = run.take();
    const OverlapReport report = overlap_report(*trace);
    ASSERT_THAT(report.ranks, SizeIs(1));
    const RankOverlap& rank = report.ranks[0];
    ASSERT_THAT(rank.steps, SizeIs(1));
    const OverlapParts& parts = rank.steps[0].parts;
    // K = [100, 200) and [250, 300), C = [180, 280): both run in [180, 200) and [250, 280).
    EXPECT_EQ(parts.overlapped, 20 + 30);
    EXPECT_EQ(parts.computation, 100 + 50 - 50);
    EXPECT_EQ(parts.exposed_communication, 100 - 50);
    EXPECT_EQ(parts.other, 400 - 200);  // |K or C| = [100, 300)
    EXPECT_EQ(parts.whole(), 400);
    EXPECT_DOUBLE_EQ(parts.overlap_percent(), 50.0);
    // From the first to the last device event, 100..320: the copy's last 20 are other.
    EXPECT_EQ(rank.device_time.other, 20);
    EXPECT_EQ(rank.device_time.whole(), 220);
}

TEST(Overlap, TheMeanIsOverTheKeptSteps) {
    RunBuilder run;
    for (int s = 0; s < 3; ++s) {
        run.step(0, s, 1000 * s, 1000 * s + 400);
        device_work(run, 0, 1000 * s);
    }
    run.step(0, 3, 3000, 3400);
    run.kernel(0, 3100, 3200, 3010);  // 1 event instead of 5: the last step was cut off
    const auto trace = run.take();
    const RankOverlap rank = overlap_report(*trace).ranks[0];
    ASSERT_THAT(rank.steps, SizeIs(3));
    EXPECT_EQ(rank.cut_steps, 1);
    EXPECT_EQ(rank.sum.overlapped, 3 * 50);
    EXPECT_DOUBLE_EQ(rank.mean_us(rank.sum.overlapped), 50e-3);
}

TEST(Overlap, WithoutCommunicationNothingOverlaps) {
    RunBuilder run;
    run.kernel(0, 100, 200, 10);
    const auto trace = run.take();
    EXPECT_DOUBLE_EQ(overlap_report(*trace).ranks[0].sum.overlap_percent(), 0);
    EXPECT_EQ(overlap_report(*trace).ranks[0].sum.computation, 100);
}

TEST(Overlap, ASelectionKeepsItsRankStepsAndTime) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        for (int s = 0; s < 3; ++s) {
            run.step(rank, s, 1000 * s, 1000 * s + 400);
            device_work(run, rank, 1000 * s);
        }
    }
    const auto trace = run.take();
    const auto by_step = overlap_report(*trace, {.rank = 1, .first_step = 1, .last_step = 1});
    ASSERT_THAT(by_step.ranks, SizeIs(1));
    EXPECT_EQ(by_step.ranks[0].rank, 1);
    ASSERT_THAT(by_step.ranks[0].steps, SizeIs(1));
    EXPECT_EQ(by_step.ranks[0].steps[0].number, 1);

    // [1190, 1260): K has 1190..1200 and 1250..1260, C all of it.
    const auto by_time = overlap_report(*trace, {.rank = 0, .from_ns = 1190, .to_ns = 1260}).ranks[0];
    EXPECT_EQ(by_time.sum.overlapped, 10 + 10);
    EXPECT_EQ(by_time.sum.exposed_communication, 50);
    EXPECT_EQ(by_time.sum.whole(), 70);
    EXPECT_EQ(by_time.device_time.whole(), 70);
}

TEST(Temporal, EachPartIsOutsideThoseBeforeItAndTheySumToTheWhole) {
    RunBuilder run;
    device_work(run, 0, 0);
    run.memset(0, 150, 170, 21);  // under compute
    run.kernel(0, 350, 360, 45);  // after 30 of idle time
    const auto trace = run.take();
    const RankTemporal rank = temporal_breakdown(*trace).ranks[0];
    EXPECT_EQ(rank.whole.time, (Interval{100, 360}));
    EXPECT_EQ(rank.whole.compute, 100 + 50 + 10);
    EXPECT_EQ(rank.whole.exposed_communication, 50);  // 200..250
    EXPECT_EQ(rank.whole.exposed_memory, 20);         // 300..320
    EXPECT_EQ(rank.whole.idle, 30);                   // 320..350
    EXPECT_EQ(rank.whole.whole(), 260);
    EXPECT_EQ(rank.whole.non_compute(), 70);
}

TEST(Temporal, AStepsTimeIsFromItsFirstToItsLastDeviceEvent) {
    RunBuilder run;
    for (int s = 0; s < 2; ++s) {
        run.step(0, s, 1000 * s, 1000 * s + 400);
        device_work(run, 0, 1000 * s);
    }
    const auto trace = run.take();
    const RankTemporal rank = temporal_breakdown(*trace).ranks[0];
    ASSERT_THAT(rank.steps, SizeIs(2));
    EXPECT_EQ(rank.steps[1].parts.time, (Interval{1100, 1320}));
    EXPECT_EQ(rank.steps[1].parts.idle, 0);
    EXPECT_EQ(rank.whole.time, (Interval{100, 1320}));
    EXPECT_EQ(rank.whole.idle, 1100 - 320);  // between the steps

    // If steps are selected, the whole is their sum: the time between them does not belong to it.
    const RankTemporal both = temporal_breakdown(*trace, {.first_step = 0, .last_step = 1}).ranks[0];
    EXPECT_EQ(both.whole.idle, 0);
    EXPECT_EQ(both.whole.compute, 2 * 150);
    const RankTemporal one = temporal_breakdown(*trace, {.from_ns = 1250, .to_ns = 1310}).ranks[0];
    EXPECT_EQ(one.whole.time, (Interval{1250, 1310}));
    EXPECT_EQ(one.whole.compute, 50);
    EXPECT_EQ(one.whole.exposed_memory, 10);
}

TEST(Temporal, CountsAnEmptyEventAsFirstOrLast) {
    RunBuilder run;
    run.kernel(0, 50, 50);  // empty, as is common in traces of whole microseconds
    run.kernel(0, 100, 200);
    run.kernel(0, 230, 230);
    const auto trace = run.take();
    const TemporalParts whole = temporal_breakdown(*trace).ranks[0].whole;
    EXPECT_EQ(whole.time, (Interval{50, 230}));
    EXPECT_EQ(whole.idle, 50 + 30);
    EXPECT_EQ(whole.compute, 100);
}

TEST(Temporal, FilesAreNotTheDevices) {
    RunBuilder run;
    run.kernel(0, 100, 200, 10);
    run.file(0, schema::kCopyDiskToHost, 50, 500, 20);
    run.kernel(0, 500, 600, 30);
    run.file(0, schema::kCopyHostToDisk, 600, 900, 40);
    const auto trace = run.take();
    const TemporalParts whole = temporal_breakdown(*trace).ranks[0].whole;
    EXPECT_EQ(whole.time.start, 100);
    EXPECT_EQ(whole.time.end, 600);
    EXPECT_EQ(whole.idle, 500 - 200);
    EXPECT_EQ(whole.exposed_memory, 0);
    EXPECT_EQ(overlap_report(*trace).ranks[0].device_time.other, 500 - 200);
}

TEST(Temporal, ARankWithoutDeviceWorkHasNoTime) {
    RunBuilder run;
    run.range(0, 0, 10, "aten::add");
    const auto trace = run.take();
    const RankTemporal rank = temporal_breakdown(*trace).ranks[0];
    EXPECT_EQ(rank.whole.whole(), 0);
    EXPECT_THAT(rank.steps, SizeIs(0));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
