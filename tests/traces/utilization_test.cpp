// Utilization: what devices, hosts and ranks did, from samples whose means, areas and gaps are known by
// arithmetic.
#include "traces/analysis/job/utilization.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/job/samples.h"
#include "traces/analysis/job/work_size.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000'000, kPeriod = kSecond / 10;
constexpr Interval kAlways{0, std::numeric_limits<std::int64_t>::max()};

// One value every 100 ms from 0 to `seconds`; a GPU's if `device` is not negative.
template <class Value>
void sample(RunBuilder& run, std::string_view name, int rank, std::string_view host, int device,
            double seconds, Value value, std::int64_t from = 0) {
    for (std::int64_t i = 0; i <= static_cast<std::int64_t>(seconds * 10); ++i) {
        run.sink().add(schema::CounterRow{.time = from + i * kPeriod,
                                          .rank = rank,
                                          .name = run.sink().intern(name),
                                          .value = static_cast<double>(value(static_cast<double>(i) / 10)),
                                          .host = run.sink().intern(host),
                                          .device = device});
    }
}
auto constant(double value) {
    return [value](double) { return value; };
}
void add_gpu(RunBuilder& run, const std::string& host, int number, bool visible = true) {
    schema::DeviceRow row;
    row.host = host;
    row.kind = "gpu";
    row.number = number;
    row.name = "GPU of a test";
    row.visible = visible;
    run.sink().add(row);
}
UtilizationReport report_of(RunBuilder& run, const Selection& selection = {},
                            const UtilizationOptions& options = {}) {
    const auto trace = run.take();
    return utilization_report(*trace, selection, options);
}

// A simulated run has ranks only, each with a number of its own as its device.
TEST(Utilization, RanksThatShareADeviceAreOne) {
    RunBuilder run(8, 4);
    for (const auto& [key, value] : {std::pair{"run.device", "sim"}, {"run.ranks_per_device", "2"}})
        run.sink().add(schema::RunInfoRow{key, value});
    const UtilizationReport report = report_of(run);
    EXPECT_EQ(report.job.devices, 4);
    ASSERT_EQ(report.devices.size(), 4U);
    EXPECT_EQ(report.devices[3].host, "node1");
    EXPECT_EQ(report.devices[3].device, 1);
    EXPECT_THAT(report.devices[3].ranks, ElementsAre(6, 7));
}

TEST(Utilization, OfAConstantIsThatConstantExactly) {
    RunBuilder run(1);
    add_gpu(run, "host", 0);
    sample(run, "gpu_utilization_percent", 0, "host", 0, 10, constant(70));
    const UtilizationReport report = report_of(run);
    ASSERT_EQ(report.devices.size(), 1U);
    const DeviceUse& gpu = report.devices.front();
    EXPECT_EQ(gpu.utilization_percent, 70.0);
    EXPECT_EQ(gpu.utilization_p95_percent, 70.0);
    EXPECT_EQ(gpu.idle_percent, 0.0);
    EXPECT_THAT(gpu.ranks, ElementsAre(0));
    EXPECT_EQ(gpu.name, "GPU of a test");
    EXPECT_FALSE(gpu.energy_j.has_value()) << "unknown is not 0";
    EXPECT_EQ(report.job.utilization_percent, 70.0);
    EXPECT_THAT(report.notes, IsEmpty());
}

TEST(Utilization, TheEnergyOfATriangleOfPowerIsItsArea) {
    RunBuilder run(1);
    // From 0 W up to 300 W after 5 s, and down to 0 W after 10 s: 300 W * 10 s / 2.
    sample(run, "gpu_power_watts", 0, "host", 0, 10,
           [](double t) { return t <= 5 ? 60 * t : 60 * (10 - t); });
    const UtilizationReport report = report_of(run);
    ASSERT_EQ(report.devices.size(), 1U);
    EXPECT_NEAR(report.devices.front().energy_j.value_or(0), 1500, 1e-9);
    EXPECT_FALSE(report.devices.front().energy_from_counter);
    EXPECT_NEAR(report.devices.front().power_watts.value_or(0), 150, 1e-9);
    EXPECT_NEAR(report.job.energy_j.value_or(0), 1500, 1e-9);
}

TEST(Utilization, TheDevicesOwnCounterOfEnergyComesFirst) {
    RunBuilder run(1);
    sample(run, "gpu_power_watts", 0, "host", 0, 10, constant(100));
    sample(run, "gpu_energy_joules", 0, "host", 0, 10, [](double t) { return 5000 + 90 * t; });
    const UtilizationReport report = report_of(run);
    EXPECT_NEAR(report.devices.front().energy_j.value_or(0), 900, 1e-6);
    EXPECT_TRUE(report.devices.front().energy_from_counter);
}

TEST(Utilization, ACounterOfEnergyThatBeginsAgainLosesOnlyThatInterval) {
    RunBuilder run(1);
    sample(run, "gpu_energy_joules", 0, "host", 0, 1,
           [](double t) { return t < 0.55 ? 1000 + 10 * t : 10 * t; });
    // 0.5 s before the reset, 0.4 s after it.
    EXPECT_NEAR(report_of(run).devices.front().energy_j.value_or(0), 9, 1e-9);
}

TEST(Utilization, NothingIsKnownAcrossAGap) {
    RunBuilder run(1);
    sample(run, "gpu_power_watts", 0, "host", 0, 1, constant(100));
    sample(run, "gpu_power_watts", 0, "host", 0, 1, constant(300), 100 * kSecond);
    sample(run, "gpu_utilization_percent", 0, "host", 0, 1, constant(0));
    sample(run, "gpu_utilization_percent", 0, "host", 0, 2, constant(90), 100 * kSecond);
    const UtilizationReport report = report_of(run);
    const DeviceUse& gpu = report.devices.front();
    EXPECT_NEAR(gpu.energy_j.value_or(0), 400, 1e-9) << "1 s at 100 W, 1 s at 300 W, 99 s unknown";
    EXPECT_NEAR(gpu.utilization_percent.value_or(0), 60, 1e-9);
    EXPECT_NEAR(gpu.idle_percent.value_or(0), 100.0 / 3, 1e-9);
    EXPECT_THAT(report.notes,
                ElementsAre(HasSubstr("The power of GPU 0 of host was sampled for 2.0 of 102.0 s")));
}

TEST(Utilization, OfFourDevicesOfWhichOneWorksThreeAreUnused) {
    RunBuilder run(1);
    for (int gpu = 0; gpu < 4; ++gpu) {
        add_gpu(run, "host", gpu);
        sample(run,
               gpu == 2 ? "gpu_utilization_percent" : "gpu" + std::to_string(gpu) + "_utilization_percent",
               gpu == 2 ? 0 : -1, "host", gpu, 10, constant(gpu == 2 ? 80 : 0));
    }
    const UtilizationReport report = report_of(run);
    ASSERT_EQ(report.devices.size(), 4U);
    for (const DeviceUse& gpu : report.devices) EXPECT_EQ(gpu.unused(), gpu.device != 2) << gpu.device;
    EXPECT_EQ(report.job.devices, 4);
    EXPECT_EQ(report.job.unused_devices, 3);
    EXPECT_EQ(report.job.utilization_percent, 20.0);
    EXPECT_EQ(report.job.idle_percent, 75.0);
    EXPECT_THAT(report.devices[2].ranks, ElementsAre(0));
}

TEST(Utilization, ADeviceThatTheJobMayNotUseIsNotCounted) {
    RunBuilder run(1);
    add_gpu(run, "host", 0);
    add_gpu(run, "host", 1, false);
    sample(run, "gpu_utilization_percent", 0, "host", 0, 1, constant(50));
    sample(run, "gpu1_utilization_percent", -1, "host", 1, 1, constant(0));
    const UtilizationReport report = report_of(run);
    EXPECT_EQ(report.job.devices, 1);
    EXPECT_EQ(report.job.unused_devices, 0);
    EXPECT_EQ(report.job.utilization_percent, 50.0);
    EXPECT_THAT(report.notes, ElementsAre(HasSubstr("1 device is not known to be the job's")));
}

TEST(Utilization, LeavesDamagedValuesOutAndSaysSo) {
    RunBuilder run(1);
    sample(run, "gpu_utilization_percent", 0, "host", 0, 10, constant(70));
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), -5.0, 1e300,
                               std::numeric_limits<double>::infinity(), 101.0}) {
        run.sink().add(schema::CounterRow{.time = 3 * kSecond + 1,
                                          .rank = 0,
                                          .name = run.sink().intern("gpu_utilization_percent"),
                                          .value = value,
                                          .host = run.sink().intern("host"),
                                          .device = 0});
    }
    const UtilizationReport report = report_of(run);
    EXPECT_EQ(report.devices.front().utilization_percent, 70.0);
    EXPECT_THAT(report.notes, ElementsAre(HasSubstr("5 samples of utilization_percent are left out")));
}

TEST(Utilization, SamplesInAnyOrderAndTwiceAreThoseInOrder) {
    const SampledCurve curve({{3 * kPeriod, 30}, {0, 0}, {kPeriod, 10}, {2 * kPeriod, 20}, {kPeriod, 99}}, {},
                             0, kAlways);
    EXPECT_EQ(curve.samples().size(), 4U);
    EXPECT_NEAR(curve.mean(), 15, 1e-12);
    EXPECT_NEAR(curve.integral(), 15 * 0.3, 1e-12);
}

TEST(Utilization, TimesAtTheEndsOfTheirRangeAreHarmless) {
    constexpr auto kLeast = std::numeric_limits<std::int64_t>::min(),
                   kMost = std::numeric_limits<std::int64_t>::max();
    const SampledCurve curve({{kLeast, 1}, {0, 2}, {kMost, 3}}, {}, kPeriod, {kLeast, kMost});
    EXPECT_GE(curve.mean(), 1);
    EXPECT_LE(curve.mean(), 3);
    EXPECT_EQ(curve.fold(10).size(), 10U);
}

TEST(Utilization, OnePercentOfTheTimeHasThatWeight) {
    // Sampled every 100 ms, but during its last second every 10 ms.
    std::vector<Sample> samples;
    for (int i = 0; i <= 90; ++i) samples.push_back({i * kPeriod, 10});
    for (int i = 1; i <= 100; ++i) samples.push_back({9 * kSecond + i * kPeriod / 10, 90});
    const SampledCurve curve(samples, {}, kPeriod, kAlways);
    EXPECT_NEAR(curve.mean(), (10 * 9 + 90 * 1) / 10.0, 0.05);
    EXPECT_EQ(curve.percentile(0.89), 10);
    EXPECT_EQ(curve.percentile(0.95), 90);
}

TEST(Utilization, IsCutAtTheSelectedTime) {
    RunBuilder run(1);
    sample(run, "gpu_power_watts", 0, "host", 0, 10, [](double t) { return 10 * t; });
    // Between two samples: from 15.5 W at 1.55 s to 24.5 W at 2.45 s.
    const UtilizationReport report = report_of(run, {.from_ns = 1'550'000'000, .to_ns = 2'450'000'000});
    EXPECT_NEAR(report.devices.front().energy_j.value_or(0), 20 * 0.9, 1e-9);
    EXPECT_NEAR(report.job.seconds, 0.9, 1e-9);
}

TEST(Utilization, TellsEnergyAndCostOfASample) {
    RunBuilder run(2);
    for (const auto& [key, value] : {std::pair("data.batch", "8"), std::pair("run.ranks", "2"),
                                     std::pair("model.type", "gpt"), std::pair("model.context", "128")})
        run.sink().add(schema::RunInfoRow{key, value});
    for (int rank = 0; rank < 2; ++rank) {
        sample(run, "gpu_power_watts", rank, "host", rank, 20, constant(200));
        for (int step = 0; step < 5; ++step)
            run.step(rank, step, (5 + 2 * step) * kSecond, (7 + 2 * step) * kSecond);
    }
    const UtilizationReport report = report_of(run, {}, {.price_per_device_hour = 3.6});
    const JobUse& job = report.job;
    EXPECT_EQ(job.steps, 5);
    EXPECT_NEAR(job.energy_j.value_or(0), 8000, 1e-6) << "2 devices, 20 s, 200 W";
    EXPECT_NEAR(job.energy_per_step_j.value_or(0), 800, 1e-6) << "2 devices, 2 s, 200 W";
    EXPECT_EQ(job.samples_per_step, 16.0);
    EXPECT_NEAR(job.energy_per_sample_j.value_or(0), 50, 1e-6);
    EXPECT_NEAR(job.energy_per_token_j.value_or(0), 50.0 / 128, 1e-9);
    EXPECT_NEAR(job.cost.value_or(0), 0.04, 1e-9) << "2 devices, 20 s, 0.001 a second";
    EXPECT_NEAR(job.cost_per_million_samples.value_or(0), 0.04 / 80 * 1e6, 1e-6);
}

TEST(Utilization, CountsSamplesOnceWhereRanksShareThem) {
    RunBuilder run(4);
    for (const auto& [key, value] : {std::pair("data.batch", "8"), std::pair("run.ranks", "4"),
                                     std::pair("parallel.tensor", "2"), std::pair("train.accumulation", "3")})
        run.sink().add(schema::RunInfoRow{key, value});
    EXPECT_EQ(work_of_step(*run.take()).samples, 8 * 3 * 2);
}

TEST(Utilization, SaysWhatHeldTheClocksDown) {
    RunBuilder run(1);
    // Idle (1) and set clocks (2) hold nothing down; for the second half the power cap (4) does.
    sample(run, "gpu_throttle_reasons_bits", 0, "host", 0, 10, [](double t) { return t < 4.95 ? 3 : 4 + 2; });
    sample(run, "gpu_sm_clock_mhz", 0, "host", 0, 10, [](double t) { return t < 4.95 ? 1980 : 1200; });
    const UtilizationReport report = report_of(run, {}, {.lane_points = 10});
    const DeviceUse& gpu = report.devices.front();
    EXPECT_NEAR(gpu.throttled_percent.value_or(0), 50.5, 1e-9);
    EXPECT_EQ(gpu.throttled_by, "power cap 50.5 %");
    EXPECT_EQ(gpu.throttled_sm_clock_mhz, 1200.0);
    EXPECT_EQ(gpu.free_sm_clock_mhz, 1980.0);
    ASSERT_EQ(gpu.lane.size(), 10U);
    EXPECT_NEAR(gpu.lane[1].throttled, 0, 1e-6);
    EXPECT_NEAR(gpu.lane[8].throttled, 1, 1e-6);
}

TEST(Utilization, KeepsTheHostsOfAMergedTraceApart) {
    RunBuilder run(2, 1);  // node0 and node1, one rank each, both with a GPU 0
    sample(run, "gpu_utilization_percent", 0, "node0", 0, 5, constant(20));
    sample(run, "gpu_utilization_percent", 1, "node1", 0, 5, constant(60), kPeriod / 2);
    sample(run, "infiniband_sent_bytes_per_second", -1, "node1", 0, 5, constant(20e9));
    sample(run, "infiniband_received_bytes_per_second", -1, "node1", 0, 5, constant(0));
    schema::DeviceRow adapter;
    adapter.host = "node1";
    adapter.kind = "infiniband";
    adapter.name = "mlx5_0";
    adapter.bytes_per_second = 25e9;
    run.sink().add(adapter);
    const UtilizationReport report = report_of(run);
    ASSERT_EQ(report.hosts.size(), 2U);
    EXPECT_EQ(report.hosts[0].utilization_percent, 20.0);
    EXPECT_EQ(report.hosts[1].utilization_percent, 60.0);
    ASSERT_EQ(report.adapters.size(), 1U);
    EXPECT_EQ(report.adapters.front().host, "node1");
    EXPECT_EQ(report.adapters.front().near_limit_percent, 100.0);
    EXPECT_EQ(report.adapters.front().idle_percent, 0.0);
}

// One second each of sending and of receiving at 24 GB/s, and then neither for two: the directions are
// sampled one right after the other.
TEST(Utilization, OfAnAdapterIsOfBothDirectionsTogether) {
    RunBuilder run(1);
    const auto from = [](double begin, double end) {
        return [=](double s) { return s >= begin && s < end ? 24e9 : 0.0; };
    };
    sample(run, "infiniband_sent_bytes_per_second", -1, "host", 0, 4, from(0, 1));
    sample(run, "infiniband_received_bytes_per_second", -1, "host", 0, 4, from(1, 2), 20'000);
    schema::DeviceRow adapter;
    adapter.host = "host";
    adapter.kind = "infiniband";
    adapter.name = "mlx5_0";
    adapter.bytes_per_second = 25e9;
    run.sink().add(adapter);
    const UtilizationReport report = report_of(run);
    ASSERT_EQ(report.adapters.size(), 1U);
    EXPECT_NEAR(report.adapters.front().near_limit_percent.value_or(0), 50, 2) << "25 of each";
    EXPECT_NEAR(report.adapters.front().idle_percent.value_or(0), 50, 2) << "75 of each";

    RunBuilder half(1);
    sample(half, "infiniband_sent_bytes_per_second", -1, "host", 0, 4, from(0, 1));
    EXPECT_EQ(report_of(half).adapters.front().idle_percent, std::nullopt) << "it may have received";
}

TEST(Utilization, OfTheProcessorsIsThatOfTheJobsProcesses) {
    RunBuilder run(2);
    run.sink().add(schema::RunInfoRow{"run.device", "cpu"});
    run.sink().add(schema::RunInfoRow{"host.host.cpus", "16"});
    run.sink().add(schema::RunInfoRow{"host.host.cpu_limit_cores", "8"});
    sample(run, "process_cpu_cores", 0, "", -1, 10, constant(1.5));
    sample(run, "process_cpu_cores", 1, "", -1, 10, constant(2.5), kPeriod / 3);
    sample(run, "process_resident_bytes", 0, "", -1, 10, constant(1e9));
    sample(run, "host_cpu_cores", -1, "host", -1, 10, constant(9));
    const UtilizationReport report = report_of(run);
    ASSERT_EQ(report.devices.size(), 1U);
    const DeviceUse& cores = report.devices.front();
    EXPECT_EQ(cores.kind, UsedDevice::cores);
    EXPECT_THAT(cores.ranks, ElementsAre(0, 1));
    EXPECT_NEAR(cores.utilization_percent.value_or(0), 50, 0.5) << "4 of the 8 cores that the job may use";
    EXPECT_EQ(cores.memory_peak_bytes, 1e9);
    EXPECT_NEAR(report.hosts.front().job_cores.value_or(0), 4, 0.04);
    EXPECT_EQ(report.hosts.front().busy_cores, 9.0);
    EXPECT_EQ(report.ranks[1].cores, 2.5);
}

// Before schema version 9 a counter had neither host nor device.
TEST(Utilization, ReadsFilesWhoseCountersHaveNoDevice) {
    RunBuilder run(2);
    sample(run, "gpu_utilization_percent", 0, "", -1, 5, constant(30));
    sample(run, "gpu_utilization_percent", 1, "", -1, 5, constant(50), 7);
    sample(run, "gpu3_utilization_percent", -1, "", -1, 5, constant(0));
    const UtilizationReport report = report_of(run);
    ASSERT_EQ(report.devices.size(), 3U);
    EXPECT_EQ(report.devices[0].utilization_percent, 30.0);
    EXPECT_EQ(report.devices[1].utilization_percent, 50.0);
    EXPECT_EQ(report.devices[2].device, 3);
    EXPECT_EQ(report.devices[2].host, "host");
    EXPECT_FALSE(report.devices[2].unused()) << "such a file does not say whether the job may use it";
}

TEST(Utilization, LanesShowGapsAndPeaks) {
    RunBuilder run(1);
    sample(run, "gpu_utilization_percent", 0, "host", 0, 2, constant(40));
    sample(
        run, "gpu_utilization_percent", 0, "host", 0, 2, [](double t) { return t == 1 ? 100 : 0; },
        8 * kSecond);
    const UtilizationReport report = report_of(run, {}, {.lane_points = 10});
    const std::vector<LanePoint>& lane = report.devices.front().lane;
    ASSERT_EQ(lane.size(), 10U);
    EXPECT_NEAR(lane[0].mean, 40, 1e-4);
    EXPECT_FALSE(lane[5].known);
    EXPECT_EQ(lane[8].highest, 100);
    EXPECT_NEAR(lane[8].mean, 100 * 0.05, 1e-3) << "half of the triangle of 0.2 s x 100 % / 2";
}

TEST(Utilization, WithoutSamplesSaysHowToGetThem) {
    RunBuilder run(2);
    run.kernel(0, 0, 1000);
    const UtilizationReport report = report_of(run);
    EXPECT_FALSE(report.any_sample());
    EXPECT_THAT(report.notes, ElementsAre(HasSubstr("has no samples")));
    for (const DeviceUse& device : report.devices) EXPECT_FALSE(device.utilization_percent.has_value());
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
