// The statistics of an area of rows x time: what counts, what is cut, unions, exposed communication, groups,
// and the histogram of durations.
#include "traces/analysis/area/area.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::SizeIs;

const std::atomic<bool> kGoOn = false;

// Two ranks: on stream 7 "gemm" 100..200 and "relu" 200..230, on stream 20 a collective 150..260; rank 1 all
// of it 10 later.
std::unique_ptr<store::Trace> two_ranks() {
    RunBuilder run(2);
    for (int r = 0; r < 2; ++r) {
        const std::int64_t at = 10 * r;
        run.kernel(r, at + 100, at + 200, at + 10);
        run.kernel(r, at + 200, at + 230, at + 20, 7, "relu");
        run.collective(r, at + 150, at + 260, {.launched = at + 30});
    }
    return run.take();
}

// The streams of the trace alone, in this time.
Area streams_of(const store::Trace& trace, Interval time) {
    Area area = whole_area(trace);
    area.threads.clear();
    area.time = time;
    return area;
}

std::vector<std::string> names(const AreaReport& report) {
    std::vector<std::string> result;
    for (const AreaGroup& group : report.groups) result.push_back(group.name);
    return result;
}

const AreaGroup& called(const AreaReport& report, const std::string& name) {
    const auto at = std::find_if(report.groups.begin(), report.groups.end(),
                                 [&](const AreaGroup& group) { return group.name == name; });
    EXPECT_NE(at, report.groups.end()) << name;
    return *at;
}

TEST(Area, CountsPartsInsideAndWholeDurations) {
    const auto trace = two_ranks();
    const AreaReport report = area_report(*trace, streams_of(*trace, {180, 220}), GroupBy::name, kGoOn);
    const AreaGroup& gemm = called(report, "gemm");
    EXPECT_EQ(gemm.count, 2);
    EXPECT_EQ(gemm.cut, 2);        // both begin before 180
    EXPECT_EQ(gemm.sum, 20 + 30);  // 180..200 and 180..210
    EXPECT_EQ(gemm.busy, 30);      // 180..210
    EXPECT_EQ(gemm.whole, 200);
    EXPECT_EQ(gemm.shortest, 100);
    EXPECT_EQ(gemm.longest, 100);
    EXPECT_DOUBLE_EQ(gemm.mean(), 100);
    EXPECT_EQ(gemm.communication, 0);
    const AreaGroup& relu = called(report, "relu");
    EXPECT_EQ(relu.sum, 20 + 10);  // 200..220, 210..220
    EXPECT_EQ(relu.busy, 20);
    EXPECT_EQ(report.all.count, 6);
    EXPECT_EQ(report.all.sum, 50 + 30 + 40 + 40);
    EXPECT_EQ(report.all.busy, 40);
}

TEST(Area, AnEventThatOnlyTouchesTheAreaIsOutside) {
    const auto trace = two_ranks();
    const AreaReport report = area_report(*trace, streams_of(*trace, {230, 240}), GroupBy::name, kGoOn);
    EXPECT_EQ(called(report, "relu").count, 1);  // rank 1's, 210..240; rank 0's ends at 230
}

TEST(Area, ExposedIsOutsideTheKernelsOfTheSameRank) {
    const auto trace = two_ranks();
    const AreaReport whole = area_report(*trace, streams_of(*trace, {0, 1000}), GroupBy::kind, kGoOn);
    const AreaGroup& all = called(whole, "Communication");
    EXPECT_EQ(all.communication, 110 + 110);
    EXPECT_EQ(all.exposed, 30 + 30);  // 230..260 of each rank
    EXPECT_EQ(whole.all.exposed, 60);
    // Kernels of rows outside the area hide communication all the same.
    Area area = streams_of(*trace, {225, 250});
    for (std::size_t s = 0; s < trace->streams.size(); ++s)
        area.streams[s] = trace->streams[s].id == 20 && trace->streams[s].rank.value == 0;
    const AreaReport part = area_report(*trace, area, GroupBy::rank, kGoOn);
    EXPECT_THAT(names(part), ElementsAre("0"));
    EXPECT_EQ(part.all.communication, 25);
    EXPECT_EQ(part.all.exposed, 20);
    EXPECT_DOUBLE_EQ(part.all.exposed_percent(), 80);
}

TEST(Area, AProcessGroupsRowStandsForAllRanksParts) {
    const auto trace = two_ranks();
    Area area;
    area.time = {0, 1000};
    area.groups = {0};
    EXPECT_EQ(area_report(*trace, area, GroupBy::name, kGoOn).all.count, 2);
    area.groups = {7};
    EXPECT_EQ(area_report(*trace, area, GroupBy::name, kGoOn).all.count, 0);
}

TEST(Area, TheRowsOfThreadsHoldCallsAndRanges) {
    const auto trace = two_ranks();
    Area area = whole_area(*trace);
    area.streams.clear();
    area.time = {0, 25};
    const AreaReport report = area_report(*trace, area, GroupBy::kind, kGoOn);
    EXPECT_THAT(names(report), ElementsAre("runtime call"));
    EXPECT_EQ(report.all.count, 3);  // at 10 and 20 of rank 0, at 20 of rank 1
}

TEST(Area, OfOneNameAllEventsOfAnyKind) {
    const auto trace = two_ranks();
    Area area = whole_area(*trace);
    area.name = *trace->strings.find("relu");
    const AreaReport report = area_report(*trace, area, GroupBy::rank, kGoOn);
    EXPECT_THAT(names(report), ElementsAre("0", "1"));
    EXPECT_EQ(report.all.count, 2);
    EXPECT_EQ(report.all.sum, 60);
    const store::EventList of_rank_1 =
        area_events(*trace, area, GroupBy::rank, report.groups[1].group, kGoOn);
    ASSERT_EQ(of_rank_1.size(), 1U);
    EXPECT_EQ(time_of(*trace, of_rank_1.event(0)).start, 210);
}

TEST(Area, GroupsWithTheSameEventsSumToAll) {
    RunBuilder run(3);
    std::mt19937 random(1);
    for (int i = 0; i < 400; ++i) {
        const auto start = static_cast<std::int64_t>(random() % 10'000);
        const auto end = start + static_cast<std::int64_t>(random() % 300);
        const int rank = static_cast<int>(random() % 3);
        if (i % 4 == 0) {
            run.collective(rank, start, end, {.sequence = i, .launched = start});
        } else {
            run.kernel(rank, start, end, start, 7 + i % 3, "kernel " + std::to_string(i % 7));
        }
    }
    const auto trace = run.take();
    Area area = whole_area(*trace);
    area.time = {2'000, 7'000};
    for (const GroupBy by : {GroupBy::name, GroupBy::kind, GroupBy::module, GroupBy::unit, GroupBy::rank}) {
        const AreaReport report = area_report(*trace, area, by, kGoOn);
        std::int64_t count = 0, sum = 0, exposed = 0, listed = 0;
        for (const AreaGroup& group : report.groups) {
            count += group.count;
            sum += group.sum;
            exposed += group.exposed;
            listed += static_cast<std::int64_t>(area_events(*trace, area, by, group.group, kGoOn).size());
            EXPECT_LE(group.busy, group.sum);
            EXPECT_LE(group.exposed, group.communication);
        }
        EXPECT_EQ(count, report.all.count);
        EXPECT_EQ(listed, report.all.count);
        EXPECT_EQ(sum, report.all.sum);
        EXPECT_GE(exposed, report.all.exposed);  // events of several groups may overlap
        // The same figures the long way: each instant by itself.
        if (by != GroupBy::kind) continue;
        std::int64_t busy = 0, exposed_now = 0;
        for (std::int64_t t = 2'000; t < 7'000; ++t) {
            std::vector<int> kernels(3), communication(3);
            for (std::size_t e = 0; e < trace->device.size(); ++e) {
                if (t < trace->device.start[e] || t >= trace->device.end[e]) continue;
                ++(trace->device.kind[e] == store::DeviceKind::kernel ? kernels
                                                                      : communication)[trace->device.rank[e]];
            }
            bool any = false;
            for (int r = 0; r < 3; ++r) {
                const auto at = static_cast<std::size_t>(r);
                any = any || kernels[at] + communication[at] > 0;
                if (communication[at] > 0 && kernels[at] == 0) ++exposed_now;
            }
            busy += any ? 1 : 0;
        }
        EXPECT_EQ(report.all.exposed, exposed_now);
        Area devices = area;
        devices.threads.clear();
        EXPECT_EQ(area_report(*trace, devices, by, kGoOn).all.busy, busy);
    }
}

TEST(Area, EndsWhenCancelled) {
    const auto trace = two_ranks();
    const std::atomic<bool> cancel = true;
    EXPECT_EQ(area_report(*trace, whole_area(*trace), GroupBy::name, cancel).all.count, 0);
}

TEST(DurationBins, HoldEveryEventOnce) {
    RunBuilder run;
    const std::vector<std::int64_t> durations = {0, 1, 5, 5, 80, 3'000, 70'000};
    std::int64_t at = 0;
    for (const std::int64_t duration : durations) {
        run.kernel(0, at, at + duration);
        at += 100'000;
    }
    const auto trace = run.take();
    const Area area = streams_of(*trace, {0, 10'000'000});
    const store::EventList events = area_events(*trace, area, GroupBy::name, std::nullopt, kGoOn);
    ASSERT_EQ(events.size(), durations.size());
    const DurationBins bins = duration_bins(*trace, events, 8);
    EXPECT_TRUE(bins.logarithmic);
    EXPECT_EQ(std::accumulate(bins.counts.begin(), bins.counts.end(), std::int64_t{0}), 7);
    EXPECT_EQ(bins.bin_of(0), 0U);
    EXPECT_EQ(bins.bin_of(70'000), 7U);
    for (const std::int64_t duration : durations) {
        const std::size_t bin = bins.bin_of(duration);
        EXPECT_LE(static_cast<double>(duration), bins.edge(bin + 1) * 1.0001);
        EXPECT_GE(static_cast<double>(std::max<std::int64_t>(duration, 1)), bins.edge(bin) * 0.9999);
    }
}

TEST(DurationBins, OfEqualDurationsAreAroundTheValue) {
    const auto trace = two_ranks();
    Area area = whole_area(*trace);
    area.name = *trace->strings.find("gemm");
    const store::EventList events = area_events(*trace, area, GroupBy::name, std::nullopt, kGoOn);
    const DurationBins bins = duration_bins(*trace, events, 9);
    EXPECT_FALSE(bins.logarithmic);
    EXPECT_THAT(bins.counts, ElementsAre(0, 0, 0, 0, 2, 0, 0, 0, 0));
    EXPECT_LT(bins.low, 100);
    EXPECT_GT(bins.high, 100);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
