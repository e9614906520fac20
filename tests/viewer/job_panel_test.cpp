// The Job panel: its lanes and sentences computed without drawing, and the panel drawn without a screen.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/panels/job/job_rows.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::HasSubstr;
using namespace traces;
using analysis::Interval;
using analysis::SampledCurve;

constexpr std::int64_t kMs = 1'000'000;

// Ten seconds on two hosts of two GPUs, sampled ten times a second: on node0 rank 0 keeps GPU 0 at 70 % with
// 300 W, GPU 1 idles; node1 has 100 % and 50 %. Each rank's process uses two cores.
std::unique_ptr<store::Trace> four_gpus() {
    store::ColumnSink sink;
    for (int rank = 0; rank < 4; ++rank) {
        const std::string host = rank < 2 ? "node0" : "node1";
        sink.add(schema::RankRow{
            .rank = rank, .device = rank % 2, .global_pid = schema::global_pid(100 + rank), .host = host});
        sink.add(schema::DeviceRow{.host = host,
                                   .kind = "gpu",
                                   .number = rank % 2,
                                   .name = "GPU of a test",
                                   .memory_bytes = std::int64_t{80} << 30,
                                   .power_limit_watts = 700});
    }
    const double used[] = {70, 0, 100, 50}, watts[] = {300, 60, 500, 200};
    for (int i = 0; i <= 100; ++i) {
        const auto add = [&](int rank, const char* name, double value, int device) {
            sink.add(schema::CounterRow{.time = i * 100 * kMs,
                                        .rank = rank,
                                        .name = sink.intern(name),
                                        .value = value,
                                        .host = sink.intern(rank < 2 ? "node0" : "node1"),
                                        .device = device});
        };
        for (int rank = 0; rank < 4; ++rank) {
            add(rank, "gpu_utilization_percent", used[rank], rank % 2);
            add(rank, "gpu_power_watts", watts[rank], rank % 2);
            add(rank, "gpu_memory_used_bytes", 10.0 * (1 << 30), rank % 2);
            add(rank, "process_cpu_cores", 2, -1);
        }
    }
    return sink.take();
}

std::vector<std::string> titles(const std::vector<JobMeasure>& measures) {
    std::vector<std::string> all;
    for (const JobMeasure& measure : measures) all.emplace_back(measure.title);
    return all;
}

TEST(JobRows, LanesAreByHostAndDevice) {
    const auto trace = four_gpus();
    const std::vector<JobMeasure> measures = job_measures(*trace, {});
    EXPECT_THAT(titles(measures), testing::ElementsAre("Utilization", "Memory", "Power", "Processor"));
    const JobMeasure& used = measures[0];
    EXPECT_EQ(used.full, 100);
    ASSERT_EQ(used.hosts.size(), 2U);
    EXPECT_EQ(used.hosts[0].name, "node0");
    ASSERT_EQ(used.hosts[0].lanes.size(), 2U);
    EXPECT_EQ(used.hosts[0].lanes[0].label, "GPU 0");
    EXPECT_EQ(used.hosts[0].lanes[0].note, "rank 0");
    EXPECT_DOUBLE_EQ(used.hosts[0].lanes[0].curve.mean(), 70);
    EXPECT_DOUBLE_EQ(used.hosts[0].lanes[1].curve.zero_percent(), 100);
    EXPECT_EQ(used.hosts[1].lanes[1].note, "rank 3");
    EXPECT_EQ(measures[1].full, 80.0 * (1 << 30)) << "the devices' memory";
    EXPECT_EQ(measures[2].full, 700) << "their limit of power";
    EXPECT_EQ(measures[3].hosts[0].lanes[0].label, "Process CPU");
}

TEST(JobRows, ATimeFilterLimitsTheLanes) {
    store::ColumnSink sink;
    for (int i = 0; i <= 10; ++i)
        sink.add(schema::CounterRow{.time = i * kMs,
                                    .rank = -1,
                                    .name = sink.intern("gpu0_utilization_percent"),
                                    .value = i < 5 ? 0.0 : 100.0});
    const auto trace = sink.take();
    analysis::Selection late;
    late.from_ns = 6 * kMs;
    EXPECT_DOUBLE_EQ(job_measures(*trace, late)[0].hosts[0].lanes[0].curve.mean(), 100);
    EXPECT_EQ(job_measures(*trace, late)[0].hosts[0].lanes[0].label, "GPU 0") << "its name has the number";
}

// A GPU is nobody's until a process of a rank uses it, and its samples then have another name: one lane. What
// no GPU can is left out.
TEST(JobRows, AGpuWhoseRankIsKnownLaterHasOneLane) {
    store::ColumnSink sink;
    sink.add(schema::RankRow{.rank = 3, .device = 1, .global_pid = schema::global_pid(1), .host = "node0"});
    for (int i = 0; i <= 10; ++i)
        sink.add(schema::CounterRow{
            .time = i * 100 * kMs,
            .rank = i < 5 ? -1 : 3,
            .name = sink.intern(i < 5 ? "gpu1_utilization_percent" : "gpu_utilization_percent"),
            .value = i == 7 ? 65535.0 : 50.0,
            .host = sink.intern("node0"),
            .device = 1});
    const auto measures = job_measures(*sink.take(), {});
    ASSERT_EQ(measures.size(), 1U);
    ASSERT_EQ(measures[0].hosts.size(), 1U);
    ASSERT_EQ(measures[0].hosts[0].lanes.size(), 1U);
    const JobLane& lane = measures[0].hosts[0].lanes[0];
    EXPECT_EQ(lane.label, "GPU 1");
    EXPECT_EQ(lane.note, "rank 3");
    EXPECT_DOUBLE_EQ(lane.curve.mean(), 50);
    EXPECT_DOUBLE_EQ(lane.curve.highest(), 50);
}

// Samples at 0, 100, 200 ms, then none until 1 s: between 200 ms and 1 s nothing is known.
TEST(JobRows, ValuesAreOnTheLineBetweenSamplesAndUnknownInGaps) {
    const SampledCurve curve({{0, 10}, {100 * kMs, 20}, {200 * kMs, 0}, {1000 * kMs, 50}}, {}, 100 * kMs,
                             Interval{0, 1100 * kMs});
    EXPECT_EQ(value_at(curve, 50 * kMs), 15);
    EXPECT_EQ(value_at(curve, 200 * kMs), 0);
    EXPECT_EQ(value_at(curve, 600 * kMs), std::nullopt);
    EXPECT_EQ(value_at(curve, -1), std::nullopt);
    EXPECT_EQ(value_at(curve, 1050 * kMs), std::nullopt);
}

TEST(JobRows, SentencesHaveUnits) {
    EXPECT_EQ(energy_text(0.0015), "1.50 mJ");
    EXPECT_EQ(energy_text(812), "812.00 J");
    EXPECT_EQ(energy_text(3.6e6), "3.60 MJ");
    analysis::JobUse job;
    job.seconds = 10;
    job.hosts = 2;
    job.devices = 4;
    EXPECT_EQ(job_headline(job), "4 devices on 2 hosts over 10.00 s.") << "what is unknown is left out";
    job.utilization_percent = 55;
    job.unused_devices = 1;
    job.energy_j = 10600;
    job.energy_per_token_j = 0.002;
    job.cost = 1.5;
    EXPECT_EQ(
        job_headline(job),
        "4 devices on 2 hosts, used 55.00 % over 10.00 s. 1 device is unused. Energy 10.60 kJ (2.00 mJ a "
        "token). Cost 1.50.");
}

class JobPanelTest : public PanelsTest {
  protected:
    JobPanelTest() { draw::items::keep(true); }
    std::unique_ptr<model::Panel> panel_ = make_panel("job");
};

TEST_F(JobPanelTest, ShowsALaneForEachDevice) {
    session_.add_trace(four_gpus(), "job.sqlite");
    draw(*panel_);
    EXPECT_EQ(item("job.lane.node0/GPU 0 rank 0"), "mean 70 %");
    EXPECT_EQ(item("job.lane.node0/GPU 1 rank 1"), "mean 0 %");
    EXPECT_EQ(item("job.lane.node1/GPU 0 rank 2"), "mean 100 %");
    EXPECT_THAT(item("job.headline"), HasSubstr("4 devices on 2 hosts, used 55.00 %"));
    click(*panel_, "job.measure.power");
    EXPECT_EQ(item("job.lane.node1/GPU 1 rank 3"), "mean 200 W");
    click(*panel_, "job.lane.node1/GPU 1 rank 3");
    EXPECT_EQ(session_.rank.at(), 3U) << "a click chooses the lane's rank";
}

TEST_F(JobPanelTest, ListsDevicesAndRanks) {
    session_.add_trace(four_gpus(), "job.sqlite");
    draw(*panel_);
    click(*panel_, "job.show.devices");
    EXPECT_EQ(item("job.devices.rows"), "4");
    click(*panel_, "job.show.ranks");
    EXPECT_EQ(item("job.ranks.rows"), "4");
    click(*panel_, "job.show.adapters");
    EXPECT_THAT(draw(*panel_), HasSubstr("No adapters of this job were sampled."));
    click(*panel_, "job.show.hosts");
    EXPECT_EQ(item("job.hosts.rows"), "2");
}

TEST_F(JobPanelTest, StaysCheapWithManyDevicesAndInAnySize) {
    store::ColumnSink sink;
    for (int device = 0; device < 256; ++device) {
        for (int i = 0; i < 200; ++i)
            sink.add(schema::CounterRow{.time = i * 100 * kMs,
                                        .rank = -1,
                                        .name = sink.intern("gpu_utilization_percent"),
                                        .value = static_cast<double>((i * 37 + device * 11) % 100),
                                        .host = sink.intern("node" + std::to_string(device / 8)),
                                        .device = device % 8});
    }
    session_.add_trace(sink.take(), "many.sqlite");
    draw(*panel_);
    EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12'000);
    for (const float size : {1.0F, 60.0F, 300.0F, 1000.0F}) draw(*panel_, size, size);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
