// Idle time: the reasons for gaps, the delays of launches, the lengths of the queues.
#include "traces/analysis/time/idle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::SizeIs;

// A launching call takes 1 ns (see run_builder.h).
TEST(Idle, AGapIsTheHostsIfTheWorkWasLaunchedAfterThePreviousEnd) {
    RunBuilder run;
    run.kernel(0, 100, 200, 90);
    run.kernel(0, 250, 300, 210);  // gap 50, launched 10 after the end of the previous kernel
    run.kernel(0, 310, 400, 220);  // gap 10, launched before: the device's own delay
    run.kernel(0, 500, 600, 230);  // gap 100, launched before, and long: another reason
    const auto trace = run.take();
    const IdleReport report = idle_report(*trace, {}, 30);
    ASSERT_THAT(report.ranks, SizeIs(1));
    ASSERT_THAT(report.ranks[0].streams, SizeIs(1));
    const StreamIdle& stream = report.ranks[0].streams[0];
    EXPECT_EQ(stream.stream, 7);
    EXPECT_EQ(stream.events, 4);
    EXPECT_EQ(stream.gap(GapKind::host_wait).ns, 50);
    EXPECT_EQ(stream.gap(GapKind::kernel_wait).ns, 10);
    EXPECT_EQ(stream.gap(GapKind::other).ns, 100);
    EXPECT_EQ(stream.gap(GapKind::other).count, 1);
    EXPECT_EQ(stream.gap(GapKind::other).longest, 100);
    EXPECT_EQ(stream.span, 600 - 100);
    EXPECT_EQ(stream.busy, 100 + 50 + 90 + 100);
    EXPECT_EQ(stream.idle(), 50 + 10 + 100);
}

TEST(Idle, TheThresholdIsInclusiveAndASetting) {
    RunBuilder run;
    run.kernel(0, 100, 200, 10);
    run.kernel(0, 230, 300, 20);
    const auto trace = run.take();
    const auto kernel_wait = [&](std::int64_t threshold) {
        return idle_report(*trace, {}, threshold).ranks[0].device.gap(GapKind::kernel_wait).ns;
    };
    EXPECT_EQ(kernel_wait(30), 30);
    EXPECT_EQ(kernel_wait(29), 0);
    EXPECT_EQ(idle_report(*trace).kernel_wait_ns, 30'000);
}

TEST(Idle, TheGapIsToTheLatestEndSoFarNotToTheEventBefore) {
    RunBuilder run;
    run.kernel(0, 100, 300, 10);
    run.kernel(0, 150, 200, 20);  // ends inside the first
    run.kernel(0, 320, 400, 30);
    const auto trace = run.take();
    const StreamIdle& stream = idle_report(*trace).ranks[0].streams[0];
    EXPECT_EQ(stream.idle(), 20);
    EXPECT_EQ(stream.busy, 200 + 80);
}

TEST(Idle, AnEventWithoutALaunchIsNotTheHostsFault) {
    RunBuilder run;
    run.kernel(0, 100, 200);
    run.kernel(0, 210, 300);
    const auto trace = run.take();
    const StreamIdle& stream = idle_report(*trace, {}, 30).ranks[0].streams[0];
    EXPECT_EQ(stream.gap(GapKind::host_wait).ns, 0);
    EXPECT_EQ(stream.gap(GapKind::kernel_wait).ns, 10);
    EXPECT_EQ(stream.launch.count, 0);
    EXPECT_EQ(stream.queue.longest, 0);
}

TEST(Idle, TheDeviceIsIdleWhenNoStreamIsBusy) {
    RunBuilder run;
    run.kernel(0, 100, 200, 10, 7);
    run.kernel(0, 180, 260, 20, 8);
    run.kernel(0, 270, 300, 30, 7);
    const auto trace = run.take();
    const RankIdle& rank = idle_report(*trace, {}, 30).ranks[0];
    ASSERT_THAT(rank.streams, SizeIs(2));
    EXPECT_EQ(rank.streams[0].idle(), 70);  // 200..270
    EXPECT_EQ(rank.streams[1].idle(), 0);
    EXPECT_EQ(rank.device.idle(), 10);  // 260..270
    EXPECT_EQ(rank.device.busy, 160 + 30);
}

// The device waits from 200 to 500 for a read of a file, whose stream has a row of its own.
TEST(Idle, AFileThatIsReadDoesNotKeepTheDeviceBusy) {
    RunBuilder run;
    run.kernel(0, 100, 200, 10);
    run.file(0, schema::kCopyDiskToHost, 180, 500, 20);
    run.kernel(0, 500, 600, 480);
    const auto trace = run.take();
    const RankIdle rank = idle_report(*trace).ranks[0];
    EXPECT_EQ(rank.device.events, 2);
    EXPECT_EQ(rank.device.busy, 100 + 100);
    EXPECT_EQ(rank.device.gap(GapKind::host_wait).ns, 500 - 200);
    ASSERT_THAT(rank.streams, SizeIs(2));
    EXPECT_EQ(rank.streams[1].busy, 500 - 180);
    const std::vector<IdleGap> gaps = idle_details(*trace).ranks[0].streams[0].gaps;
    ASSERT_THAT(gaps, SizeIs(1));
    EXPECT_EQ(gaps[0].length(), 500 - 200);
}

TEST(Idle, LaunchDelayIsFromTheEndOfTheCallToTheStart) {
    RunBuilder run;
    run.kernel(0, 100, 110, 89);   // call 89..90: delay 10
    run.kernel(0, 200, 210, 179);  // 20
    run.kernel(0, 300, 310, 269);  // 30
    run.kernel(0, 400, 410, 299);  // 100
    run.kernel(0, 500, 510, 500);  // the call ends at 501, after the start: 0, not negative
    const auto trace = run.take();
    const LaunchDelay& launch = idle_report(*trace).ranks[0].device.launch;
    EXPECT_EQ(launch.count, 5);
    EXPECT_EQ(launch.shortest, 0);
    EXPECT_EQ(launch.longest, 100);
    EXPECT_DOUBLE_EQ(launch.mean, (10 + 20 + 30 + 100 + 0) / 5.0);
    EXPECT_DOUBLE_EQ(launch.median, 20);
    EXPECT_DOUBLE_EQ(launch.p95, 30 + 0.8 * (100 - 30));  // position 0.95 * 4 = 3.8 of 0, 10, 20, 30, 100
}

TEST(Idle, TheQueueIsWhatIsLaunchedAndNotStarted) {
    RunBuilder run;
    run.kernel(0, 100, 150, 10);
    run.kernel(0, 150, 200, 20);
    run.kernel(0, 200, 250, 30);
    run.kernel(0, 300, 350, 200);  // launched when the third starts, which has just left the queue
    const auto trace = run.take();
    const QueueLength& queue = idle_report(*trace).ranks[0].streams[0].queue;
    // 1 in 10..20, 2 in 20..30, 3 in 30..100, 2 in 100..150, 1 in 150..300: over 10..300.
    EXPECT_EQ(queue.longest, 3);
    EXPECT_DOUBLE_EQ(queue.mean, (1 * 10 + 2 * 10 + 3 * 70 + 2 * 50 + 1 * 150) / 290.0);
}

TEST(Idle, ASelectionCountsWhatItsStepsLaunchedAndClipsGapsToTheRange) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        for (int s = 0; s < 2; ++s) {
            run.step(rank, s, 1000 * s, 1000 * s + 500);
            run.kernel(rank, 1000 * s + 100, 1000 * s + 200, 1000 * s + 50);
            run.kernel(rank, 1000 * s + 300, 1000 * s + 400, 1000 * s + 60);
        }
    }
    const auto trace = run.take();
    const auto by_step = idle_report(*trace, {.rank = 1, .first_step = 1, .last_step = 1}, 30);
    ASSERT_THAT(by_step.ranks, SizeIs(1));
    const StreamIdle& step = by_step.ranks[0].device;
    EXPECT_EQ(step.events, 2);
    EXPECT_EQ(step.gap(GapKind::host_wait).ns, 1100 - 400);  // since the previous step
    EXPECT_EQ(step.gap(GapKind::other).ns, 100);

    // Of the events that start in [1050, 1150): the gap before the first counts from 1050 on.
    const StreamIdle range = idle_report(*trace, {.rank = 0, .from_ns = 1050, .to_ns = 1150}).ranks[0].device;
    EXPECT_EQ(range.events, 1);
    EXPECT_EQ(range.idle(), 50);
}

// --- what lies behind the sums
// -------------------------------------------------------------------------------

TEST(IdleDetails, ListEveryGapLongestFirstWithWhatEndedIt) {
    RunBuilder run;
    run.kernel(0, 100, 200, 90);
    run.kernel(0, 250, 300, 210);
    run.kernel(0, 310, 400, 220);
    run.kernel(0, 500, 600, 230);
    const auto trace = run.take();
    const IdleDetails details = idle_details(*trace, {}, 0, 30);
    ASSERT_THAT(details.ranks, SizeIs(1));
    ASSERT_THAT(details.ranks[0].streams, SizeIs(2));  // the whole device, and its stream
    const std::vector<IdleGap>& gaps = details.ranks[0].streams[1].gaps;
    ASSERT_THAT(gaps, SizeIs(3));
    EXPECT_EQ(gaps[0].from, 400);
    EXPECT_EQ(gaps[0].to, 500);
    EXPECT_EQ(gaps[0].kind, GapKind::other);
    EXPECT_EQ(trace->device.start[static_cast<std::size_t>(gaps[0].event)], 500);
    EXPECT_EQ(gaps[1].length(), 50);
    EXPECT_EQ(gaps[1].kind, GapKind::host_wait);
    EXPECT_EQ(gaps[2].length(), 10);
    EXPECT_EQ(gaps[2].kind, GapKind::kernel_wait);
}

TEST(IdleDetails, KeepTheLongestOfEachKindIfLimited) {
    RunBuilder run;
    std::int64_t at = 100;
    for (const std::int64_t gap : {0, 7, 3, 9, 5}) {
        run.kernel(0, at + gap, at + gap + 10, at - 50);
        at += gap + 10;
    }
    const auto trace = run.take();
    const auto gaps = idle_details(*trace, {}, 2).ranks[0].streams[0].gaps;
    ASSERT_THAT(gaps, SizeIs(2));
    EXPECT_EQ(gaps[0].length(), 9);
    EXPECT_EQ(gaps[1].length(), 7);
}

TEST(IdleDetails, BinsHoldPowersOfTwo) {
    EXPECT_EQ(length_bin(0), 0U);
    EXPECT_EQ(length_bin(1), 0U);
    EXPECT_EQ(length_bin(2), 1U);
    EXPECT_EQ(length_bin(1023), 9U);
    EXPECT_EQ(length_bin(1024), 10U);
    EXPECT_EQ(length_bin(INT64_MAX), kLengthBins - 1);
    EXPECT_EQ(queue_bin(0), 0U);
    EXPECT_EQ(queue_bin(1), 1U);
    EXPECT_EQ(queue_bin(3), 2U);
    EXPECT_EQ(queue_bin(4), 3U);
    for (std::size_t b = 1; b < kLengthBins - 1; ++b) {
        EXPECT_EQ(length_bin(bin_start(b)), b);
        EXPECT_EQ(length_bin(bin_start(b) - 1), b - 1);
    }
}

// Launches at 10, 20, 30 (each call takes 1 ns); starts at 15, 40, 60. The queue holds one in [10, 15), none
// in [15, 20), one in [20, 30), two in [30, 40), one in [40, 60).
TEST(IdleDetails, TheQueuesTimeAtEachLengthSumsToTheReportsMean) {
    RunBuilder run;
    run.kernel(0, 15, 40, 10);
    run.kernel(0, 40, 60, 20);
    run.kernel(0, 60, 70, 30);
    const auto trace = run.take();
    const StreamIdleDetails details = idle_details(*trace).ranks[0].streams[0];
    EXPECT_EQ(details.queue_ns[0], 5);
    EXPECT_EQ(details.queue_ns[1], 5 + 10 + 20);
    EXPECT_EQ(details.queue_ns[2], 10);  // two or three
    const StreamIdle& stream = idle_report(*trace).ranks[0].device;
    EXPECT_DOUBLE_EQ(stream.queue.mean, (5.0 + 10 + 2 * 10 + 20) / 50);
    // Delays: 15 - 11, 40 - 21, 60 - 31.
    EXPECT_EQ(details.delays[length_bin(4)], 1);
    EXPECT_EQ(details.delays[length_bin(19)], 2);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
