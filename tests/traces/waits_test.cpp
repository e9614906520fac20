// What idle streams wait for, and why communication is exposed: each cause where it was put and nowhere else.
// That the parts sum to the whole: time_invariants.h.
#include "traces/analysis/waits/waits.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/waits/exposed.h"
#include "traces/analysis/waits/wait_names.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::size_t event_at(const store::Trace& trace, int rank, std::int64_t start) {
    for (std::size_t i = 0; i < trace.device.size(); ++i) {
        if (trace.device.start[i] == start && trace.device.rank[i] == rank) return i;
    }
    ADD_FAILURE() << "no event at " << start;
    return 0;
}

// "host 100-150": the kind, from, to.
std::vector<std::string> texts(const std::vector<Wait>& waits) {
    std::vector<std::string> all;
    for (const Wait& wait : waits) {
        all.push_back(std::string(kWaitForNames[static_cast<std::size_t>(wait.what)]) + " " +
                      std::to_string(wait.from) + "-" + std::to_string(wait.to));
    }
    return all;
}

std::vector<std::string> names_of(const store::Trace& trace, const std::vector<Wait>& waits) {
    const WaitNames names(trace);
    std::vector<std::string> all;
    for (const Wait& wait : waits) all.push_back(names.wait(wait));
    return all;
}

std::int64_t ns(const Exposure& exposure, ExposureCause cause) {
    return exposure.causes[static_cast<std::size_t>(cause)];
}

// All of an event's exposed time has this cause.
void expect_only(const Exposure& exposure, ExposureCause cause, std::int64_t length) {
    EXPECT_EQ(exposure.ns, length);
    for (int c = 0; c < kExposureCauses; ++c)
        EXPECT_EQ(exposure.causes[static_cast<std::size_t>(c)], c == static_cast<int>(cause) ? length : 0)
            << kExposureCauseNames[static_cast<std::size_t>(c)];
}

// --- gaps -----------------------------------------------------------------------------------------------

TEST(Waits, AGapBeforeALateLaunchIsTheHosts) {
    RunBuilder run;
    run.kernel(0, 100'000, 200'000, 90'000);
    run.kernel(0, 250'000, 300'000, 240'000, 7, "norm");
    const auto trace = run.take();
    const WaitFinder waits(*trace);
    const auto gap = waits.gap_before(event_at(*trace, 0, 250'000));
    EXPECT_THAT(texts(gap), ElementsAre("host 200000-240001", "start 240001-250000"));
    EXPECT_EQ(names_of(*trace, gap).front(), "launch of norm (CPU bound)");
    EXPECT_THAT(waits.gap_before(event_at(*trace, 0, 100'000)), IsEmpty());
}

TEST(Waits, AHostThatWaitsForTheDeviceOrTheDataLoaderSaysSo) {
    RunBuilder run;
    run.kernel(0, 0, 300'000, 10, 5, "attention");
    run.kernel(0, 100'000, 150'000, 20);
    run.range(0, 170'000, 340'000, "FullyShardedDataParallel.rate_limiter");
    run.runtime(0, 180'000, 301'000, "cudaEventSynchronize");
    run.kernel(0, 360'000, 400'000, 355'000);
    run.range(0, 410'000, 480'000, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    run.kernel(0, 500'000, 600'000, 490'000);
    const auto trace = run.take();
    const WaitFinder waits(*trace);
    const auto limited = waits.gap_before(event_at(*trace, 0, 360'000));
    EXPECT_THAT(texts(limited), ElementsAre("host 150000-180000", "device 180000-301000",
                                            "host 301000-355001", "start 355001-360000"));
    EXPECT_EQ(names_of(*trace, limited)[1],
              "attention (the host waits for it in FullyShardedDataParallel.rate_limiter)");
    EXPECT_THAT(
        texts(waits.gap_before(event_at(*trace, 0, 500'000))),
        ElementsAre("host 400000-410000", "data 410000-480000", "host 480000-490001", "start 490001-500000"));
    // The same wait from the other side.
    const auto waiting = waits.waiting_for(event_at(*trace, 0, 0));
    ASSERT_THAT(waiting, SizeIs(1));
    EXPECT_EQ(WaitNames(*trace).waiter(waiting[0]), "the host in FullyShardedDataParallel.rate_limiter");
}

TEST(Waits, AStreamWaitsForTheCollectiveAndForItsLateRank) {
    RunBuilder run(2);
    for (const int rank : {0, 1}) {
        const std::int64_t start = rank == 0 ? 100'000 : 300'000;
        run.kernel(rank, 0, 90'000, 10);
        run.collective(rank, start, 400'000, {.sequence = 1, .group = 1, .group_size = 2, .launched = 20});
        run.runtime(rank, 30, 31, "cudaEventRecord");
        run.runtime(rank, 32, 33, "cudaStreamWaitEvent");
        run.kernel(rank, 400'000, 500'000, 40);
    }
    const auto trace = run.take();
    const WaitFinder waits(*trace);
    const auto gap = waits.gap_before(event_at(*trace, 0, 400'000));
    EXPECT_THAT(texts(gap),
                ElementsAre("collective 90000-100000", "rank 100000-300000", "collective 300000-400000"));
    EXPECT_THAT(names_of(*trace, gap), ElementsAre("all_gather", "rank 1 in all_gather", "all_gather"));
    EXPECT_THAT(texts(waits.gap_before(event_at(*trace, 1, 400'000))),
                ElementsAre("collective 90000-400000"));
    // The kernel and the other rank's part wait for rank 1's collective.
    const WaitNames names(*trace);
    std::vector<std::string> who;
    for (const Wait& wait : waits.waiting_for(event_at(*trace, 1, 300'000)))
        who.push_back(names.waiter(wait));
    EXPECT_THAT(who, ElementsAre("gemm", "rank 0: all_gather"));
}

TEST(Waits, ACopyIsNamedAndAGapWithoutARecordedWaitIsFound) {
    RunBuilder run;
    run.kernel(0, 0, 50'000, 10);
    run.memcpy(0, 20'000, 200'000, 20);
    run.kernel(0, 205'000, 300'000, 30);  // nothing is recorded that makes it wait
    run.kernel(0, 500'000, 600'000, 40);  // nor does anything end before this one
    const auto trace = run.take();
    const WaitFinder waits(*trace);
    EXPECT_THAT(texts(waits.gap_before(event_at(*trace, 0, 205'000))),
                ElementsAre("copy 50000-200000", "start 200000-205000"));
    EXPECT_THAT(texts(waits.gap_before(event_at(*trace, 0, 500'000))), ElementsAre("unknown 300000-500000"));
}

// --- exposure -------------------------------------------------------------------------------------------

// One rank: compute from 0 to 1000 us, and a collective whose place the tests choose.
struct Placed {
    RunBuilder run;
    Placed() {
        run.step(0, 1, 0, 3'000'000);
        for (std::int64_t k = 0; k < 10; ++k) run.kernel(0, k * 100'000, (k + 1) * 100'000, 10 + k);
    }
    Exposure exposure(std::int64_t start) {
        trace = run.take();
        return WaitFinder(*trace).exposure(event_at(*trace, 0, start));
    }
    std::unique_ptr<store::Trace> trace;
};

TEST(Exposure, HiddenCommunicationHasNone) {
    Placed placed;
    placed.run.collective(0, 100'000, 400'000, {.launched = 50});
    expect_only(placed.exposure(100'000), ExposureCause::nothing, 0);
}

TEST(Exposure, IssuedLate) {
    Placed placed;
    placed.run.collective(0, 1'000'010, 1'200'010, {.launched = 1'000'000});
    expect_only(placed.exposure(1'000'010), ExposureCause::issued_late, 200'000);
}

TEST(Exposure, IssuedLateBecauseTheHostWaited) {
    Placed placed;
    placed.run.runtime(0, 200'000, 999'990, "cudaEventSynchronize");
    placed.run.kernel(0, 150'000, 999'980, 40, 4, "free");
    placed.run.collective(0, 1'000'010, 1'200'010, {.launched = 999'995});
    const Exposure exposure = placed.exposure(1'000'010);
    EXPECT_EQ(exposure.ns, 200'000);
    EXPECT_NEAR(static_cast<double>(ns(exposure, ExposureCause::host_waited)), 200'000, 20);
    EXPECT_EQ(exposure.main(), ExposureCause::host_waited);
    EXPECT_EQ(WaitNames(*placed.trace).of_cause(exposure, ExposureCause::host_waited),
              "in cudaEventSynchronize for free");
}

TEST(Exposure, QueuedBehindAnotherCollective) {
    Placed placed;
    placed.run.collective(0, 100'000, 1'000'000,
                          {.sequence = 1, .group = 1, .group_size = 2, .launched = 50});
    placed.run.collective(0, 1'000'000, 1'200'000,
                          {.operation = schema::Operation::reduce_scatter,
                           .sequence = 2,
                           .group = 1,
                           .group_size = 2,
                           .launched = 60,
                           .stream = 21});
    const Exposure exposure = placed.exposure(1'000'000);
    expect_only(exposure, ExposureCause::queued, 200'000);
    EXPECT_EQ(WaitNames(*placed.trace).of_cause(exposure, ExposureCause::queued), "behind all_gather");
}

TEST(Exposure, LongerThanTheComputeBesideIt) {
    Placed placed;
    placed.run.runtime(0, 60, 61, "cudaEventRecord");
    placed.run.collective(0, 0, 1'500'000, {.launched = 0});
    // The first kernel starts at the same time: that event is the collective's.
    const auto trace = placed.run.take();
    std::size_t at = 0;
    while (trace->device.kind[at] != store::DeviceKind::communication) ++at;
    expect_only(WaitFinder(*trace).exposure(at), ExposureCause::too_long, 500'000);
}

TEST(Exposure, NothingToHideItUnder) {
    Placed placed;  // its input is the last kernel's result
    placed.run.runtime(0, 30, 31, "cudaEventRecord");
    placed.run.runtime(0, 32, 33, "cudaStreamWaitEvent");
    placed.run.collective(0, 1'000'000, 1'200'000, {.launched = 40});
    expect_only(placed.exposure(1'000'000), ExposureCause::nothing, 200'000);
}

TEST(Exposure, ALateRankIsTheCauseOfTheWaitingAndOfWhatItPushedOut) {
    RunBuilder run(2);
    for (const int rank : {0, 1}) {
        const std::int64_t start = rank == 0 ? 100'000 : 700'000;
        run.kernel(rank, 0, 500'000, 10);
        run.collective(rank, start, 900'000, {.sequence = 1, .group = 1, .group_size = 2, .launched = 20});
    }
    const auto trace = run.take();
    const WaitFinder waits(*trace);
    // 500 to 700 us it waits; the transfer of 200 us had fitted under the kernel.
    const Exposure early = waits.exposure(event_at(*trace, 0, 100'000));
    expect_only(early, ExposureCause::late_rank, 400'000);
    EXPECT_EQ(early.late, store::RankIndex(1));
    EXPECT_EQ(ns(waits.exposure(event_at(*trace, 1, 700'000)), ExposureCause::late_rank), 0);
}

// --- reports --------------------------------------------------------------------------------------------

TEST(Exposure, TheReportSumsByOperationAndCause) {
    RunBuilder run;
    run.step(0, 1, 0, 2'000'000);
    run.kernel(0, 100, 1'000'000, 10);
    run.collective(0, 1'000'010, 1'200'010, {.launched = 1'000'000});
    run.memcpy(0, 1'300'000, 1'400'000, 20);
    const auto trace = run.take();
    const ExposedReport report = exposed_report(*trace);
    ASSERT_THAT(report.ranks, SizeIs(1));
    ASSERT_THAT(report.ranks[0].shares, SizeIs(2));
    EXPECT_EQ(report.ranks[0].shares[0].operation, "all_gather");
    EXPECT_EQ(report.ranks[0].shares[0].cause, ExposureCause::issued_late);
    EXPECT_EQ(report.ranks[0].shares[0].us_per_step, 200);
    EXPECT_EQ(report.ranks[0].shares[1].operation, "copy to device");
    EXPECT_NEAR(report.ranks[0].shares[1].percent, 100.0 / 3, 1e-9);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
