// Advice about devices, cores, swap and adapters: each rule once with its evidence, and once without.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/advice/advice.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kPeriod = 100'000'000;

// A constant value for 10 s, every 100 ms.
void sample(RunBuilder& run, std::string_view name, int rank, std::string_view host, int device,
            double value) {
    for (int i = 0; i <= 100; ++i) {
        run.sink().add(schema::CounterRow{.time = i * kPeriod,
                                          .rank = rank,
                                          .name = run.sink().intern(name),
                                          .value = value,
                                          .host = run.sink().intern(host),
                                          .device = device});
    }
}
void add_device(RunBuilder& run, const std::string& kind, int number, bool visible = true,
                double bandwidth = -1) {
    schema::DeviceRow row;
    row.host = "host";
    row.kind = kind;
    row.number = number;
    row.visible = visible;
    row.bytes_per_second = bandwidth;
    run.sink().add(row);
}
void describe(RunBuilder& run, const std::string& key, const std::string& value) {
    run.sink().add(schema::RunInfoRow{key, value});
}
// `cpus`: the processors that rank 0 may run on.
std::vector<Finding> findings_of(RunBuilder& run, std::string_view id, const std::string& cpus = {}) {
    const auto trace = run.take();
    trace->ranks[0].cpus = cpus;
    AdviceReport report = advice(*trace);
    std::erase_if(report.findings, [id](const Finding& finding) { return finding.id != id; });
    return report.findings;
}
void add_gpus(RunBuilder& run, const std::vector<double>& utilization) {
    for (std::size_t gpu = 0; gpu < utilization.size(); ++gpu) {
        const auto number = static_cast<int>(gpu);
        add_device(run, "gpu", number);
        sample(run,
               gpu == 0 ? "gpu_utilization_percent" : "gpu" + std::to_string(gpu) + "_utilization_percent",
               gpu == 0 ? 0 : -1, "host", number, utilization[gpu]);
    }
}

TEST(AdviceUse, OfFourDevicesOfWhichOneWorksThreeAreFound) {
    RunBuilder run(1);
    add_gpus(run, {80, 0, 0, 0});
    const std::vector<Finding> found = findings_of(run, "gpu-unused");
    ASSERT_THAT(found, SizeIs(3));
    EXPECT_THAT(found[0].what,
                HasSubstr("GPU 1 of host is visible to the job and did nothing: utilization 0 % in 101 "
                          "samples over 10.0 s"));
    EXPECT_THAT(found[2].what, HasSubstr("GPU 3 of host"));
    EXPECT_THAT(found[0].pytorch, HasSubstr("--nproc-per-node 4"));
    EXPECT_EQ(found[0].weight, FindingWeight::notable);
}

TEST(AdviceUse, ManyUnusedDevicesDoNotHideTheRest) {
    std::vector<double> utilization(100, 0);
    utilization[0] = 50;
    RunBuilder run(1);
    add_gpus(run, utilization);
    const std::vector<Finding> found = findings_of(run, "gpu-unused");
    ASSERT_THAT(found, SizeIs(17));
    EXPECT_THAT(found.back().what, HasSubstr("83 more devices"));
}

TEST(AdviceUse, ADeviceThatWorksALittleIsUsed) {
    RunBuilder run(1);
    add_gpus(run, {80, 0.5});
    EXPECT_THAT(findings_of(run, "gpu-unused"), IsEmpty());
}

TEST(AdviceUse, OthersDevicesAndThoseOfAJobOnProcessorsAreNotUnused) {
    RunBuilder others(1);
    add_device(others, "gpu", 1, false);
    sample(others, "gpu1_utilization_percent", -1, "host", 1, 0);
    EXPECT_THAT(findings_of(others, "gpu-unused"), IsEmpty());
    RunBuilder processors(1);
    add_gpus(processors, {0, 0});
    describe(processors, "run.device", "cpu");
    EXPECT_THAT(findings_of(processors, "gpu-unused"), IsEmpty());
}

TEST(AdviceUse, FindsClocksThatAreHeldDown) {
    RunBuilder run(1);
    add_gpus(run, {90});
    sample(run, "gpu_throttle_reasons_bits", 0, "host", 0, 0x40);
    const std::vector<Finding> found = findings_of(run, "gpu-throttled");
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_THAT(found[0].what,
                HasSubstr("GPU 0 of host were held down for 100.0 % of its time: temperature (hardware)"));
    EXPECT_THAT(found[0].change, HasSubstr("cooling"));
    RunBuilder free(1);
    add_gpus(free, {90});
    sample(free, "gpu_throttle_reasons_bits", 0, "host", 0, 0x1 | 0x2 | 0x10 | 0x100);
    EXPECT_THAT(findings_of(free, "gpu-throttled"), IsEmpty())
        << "idle, set clocks, boost of others, a display";
}

TEST(AdviceUse, FindsARankThatIsBoundToTooFewProcessors) {
    for (const auto& [cpus, cores, fires] :
         {std::tuple("0-1", 1.9, true), std::tuple("0-1", 1.0, false), std::tuple("0-15", 15.9, false)}) {
        RunBuilder run(1);
        add_gpus(run, {90});
        describe(run, "host.host.cpus", "16");
        sample(run, "process_cpu_cores", 0, "", -1, cores);
        const std::vector<Finding> found = findings_of(run, "cpu-starved", cpus);
        const bool narrow = std::any_of(found.begin(), found.end(), [](const Finding& finding) {
            return finding.what.find("may run on") != std::string::npos;
        });
        ASSERT_EQ(narrow, fires) << cpus << ", " << cores;
        if (fires) {
            EXPECT_THAT(found[0].what, HasSubstr("Rank 0 may run on 2 of the 16 processors of host"));
        }
    }
}

TEST(AdviceUse, FindsTooFewProcessorsForAllThreads) {
    for (const bool with_gpu : {true, false}) {
        RunBuilder run(1);
        if (with_gpu) add_gpus(run, {90});
        if (!with_gpu) describe(run, "run.device", "cpu");
        describe(run, "host.host.cpus", "8");
        sample(run, "process_cpu_cores", 0, "", -1, 7.5);
        sample(run, "host_cpu_cores", -1, "host", -1, 7.9);
        const std::vector<Finding> found = findings_of(run, "cpu-starved");
        ASSERT_THAT(found, SizeIs(with_gpu ? 1 : 0)) << "a job on processors is meant to use all of them";
        if (with_gpu) {
            EXPECT_THAT(found[0].what, HasSubstr("7.9 of the 8.0 processors of host are busy"));
        }
    }
}

TEST(AdviceUse, WhatOthersDoTakesNothingFromTheJobsLimit) {
    RunBuilder run(1);
    add_gpus(run, {90});
    describe(run, "host.host.cpus", "64");
    describe(run, "host.host.cpu_limit_cores", "4");
    sample(run, "process_cpu_cores", 0, "", -1, 1);
    sample(run, "host_cpu_cores", -1, "host", -1, 40);
    EXPECT_THAT(findings_of(run, "cpu-starved"), IsEmpty());
}

TEST(AdviceUse, FindsALimitOfTheControlGroup) {
    for (const double percent : {20.0, 1.0}) {
        RunBuilder run(1);
        describe(run, "host.host.cpu_limit_cores", "4");
        sample(run, "cgroup_throttled_percent", -1, "host", -1, percent);
        const std::vector<Finding> found = findings_of(run, "cpu-starved");
        ASSERT_THAT(found, SizeIs(percent > 5 ? 1 : 0));
        if (percent > 5) {
            EXPECT_THAT(found[0].what,
                        HasSubstr("limit of 4.0 cores stopped the job's processes on host for 20.0 %"));
        }
    }
}

TEST(AdviceUse, FindsSwap) {
    for (const double rate : {5.0 * (1 << 20), 100.0}) {
        RunBuilder run(1);
        sample(run, "host_swap_in_bytes_per_second", -1, "host", -1, rate);
        sample(run, "host_swap_out_bytes_per_second", -1, "host", -1, 0);
        const std::vector<Finding> found = findings_of(run, "swap");
        ASSERT_THAT(found, SizeIs(rate > 1e6 ? 1 : 0));
        if (rate > 1e6) {
            EXPECT_THAT(found[0].what, HasSubstr("5.0 MiB a second in"));
        }
    }
    RunBuilder process(1);
    sample(process, "process_swap_bytes", 0, "", -1, 1 << 30);
    EXPECT_THAT(findings_of(process, "swap"), SizeIs(1));
}

TEST(AdviceUse, FindsAnAdapterThatIsFull) {
    for (const double rate : {48e9, 20e9}) {
        RunBuilder run(1);
        add_device(run, "infiniband", 0, true, 50e9);
        sample(run, "infiniband_sent_bytes_per_second", -1, "host", 0, 1e9);
        sample(run, "infiniband_received_bytes_per_second", -1, "host", 0, rate);
        const std::vector<Finding> found = findings_of(run, "nic-saturated");
        ASSERT_THAT(found, SizeIs(rate > 40e9 ? 1 : 0));
        if (rate > 40e9) {
            EXPECT_THAT(found[0].what, HasSubstr("at 80 % of its 50.00 GB/s or more for 100.0 %"));
        }
    }
    RunBuilder unknown(1);
    sample(unknown, "infiniband_received_bytes_per_second", -1, "host", 0, 48e9);
    EXPECT_THAT(findings_of(unknown, "nic-saturated"), IsEmpty()) << "without its rate";
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
