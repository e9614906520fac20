// Utilization as text, JSON, a page and a picture, and the page of a job. scripts/job_page.sh opens the pages
// in a browser.
#include <array>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/run_builder.h"
#include "traces/analysis/job/utilization.h"
#include "traces/report/html_use.h"
#include "traces/report/report.h"
#include "traces/report/use_lanes.h"

namespace shardscope::traces::report {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kPeriod = 100'000'000;

void sample(RunBuilder& run, std::string_view name, int rank, std::string_view host, int device, double value,
            int samples = 100) {
    for (int i = 0; i <= samples; ++i) {
        run.sink().add(schema::CounterRow{.time = i * kPeriod,
                                          .rank = rank,
                                          .name = run.sink().intern(name),
                                          .value = value,
                                          .host = run.sink().intern(host),
                                          .device = device});
    }
}

void add_two_gpus(RunBuilder& run, const std::string& host = "host") {
    for (int gpu = 0; gpu < 2; ++gpu) {
        schema::DeviceRow row;
        row.host = host;
        row.kind = "gpu";
        row.number = gpu;
        row.name = "<b>GPU</b>";
        run.sink().add(row);
    }
    sample(run, "gpu_utilization_percent", 0, host, 0, 70);
    sample(run, "gpu_power_watts", 0, host, 0, 300);
    sample(run, "gpu_memory_used_bytes", 0, host, 0, 1 << 30);
    sample(run, "gpu1_utilization_percent", -1, host, 1, 0);
}

TEST(JobPage, JsonHasTheKeysThatProgramsReadAndNullForWhatIsUnknown) {
    RunBuilder run(1);
    add_two_gpus(run);
    const auto json = nlohmann::json::parse(render(analysis::utilization_report(*run.take()), Format::json));
    const auto& host = json.at("hosts").at(0);
    EXPECT_EQ(host.at("host"), "host");
    const auto& gpu = host.at("devices").at(0);
    EXPECT_EQ(gpu.at("device"), 0);
    EXPECT_EQ(gpu.at("rank"), 0);
    EXPECT_EQ(gpu.at("name"), "<b>GPU</b>");
    EXPECT_EQ(gpu.at("utilization_percent"), 70.0);
    EXPECT_EQ(gpu.at("idle_percent"), 0.0);
    EXPECT_EQ(gpu.at("memory_peak_bytes"), 1 << 30);
    EXPECT_NEAR(gpu.at("energy_j").get<double>(), 3000, 1e-6);
    EXPECT_EQ(gpu.at("energy_from"), "power");
    EXPECT_EQ(gpu.at("sampled").size(), 3U);
    const auto& idle = host.at("devices").at(1);
    EXPECT_EQ(idle.at("idle_percent"), 100.0);
    EXPECT_TRUE(idle.at("rank").is_null());
    EXPECT_TRUE(idle.at("energy_j").is_null());
    EXPECT_TRUE(json.at("job").at("cost").is_null());
    EXPECT_EQ(json.at("job").at("unused_devices"), 1);
}

TEST(JobPage, TheTableSaysWhatTheJobDidFirst) {
    RunBuilder run(1);
    add_two_gpus(run);
    const auto trace = run.take();
    EXPECT_THAT(
        render(analysis::utilization_report(*trace), Format::table),
        HasSubstr("2 devices on 1 host in 10.0 s: utilization 35.0 %, idle 50.0 %; 1 of them did nothing. "
                  "Energy 3,000 J. Cost"));
    EXPECT_THAT(
        render(analysis::utilization_report(*trace, {}, {.price_per_device_hour = 360}), Format::table),
        HasSubstr("Cost 2.00, at\n360.00 a device hour."));
}

TEST(JobPage, MarksOfTheAxisAreRoundAndNotTooMany) {
    for (const double seconds :
         {1e-6, 0.004, 0.75, 1.5, 12.0, 100.0, 500.0, 5000.0, 86400.0, 40 * 86400.0, 1e12}) {
        const std::vector<TimeMark> marks = time_marks(seconds, 8);
        EXPECT_LE(marks.size(), 9U) << seconds;
        EXPECT_GE(marks.size(), 3U) << seconds;
        for (const TimeMark& mark : marks) EXPECT_TRUE(mark.place >= 0 && mark.place <= 1) << seconds;
    }
    EXPECT_EQ(time_marks(100, 5)[1].text, "20 s");
    EXPECT_EQ(time_marks(0, 5).size(), 1U);
    EXPECT_EQ(time_marks(std::numeric_limits<double>::quiet_NaN(), 5).size(), 1U);
}

TEST(JobPage, NamesNeverBecomeMarkup) {
    const std::string hostile = "</style><script>alert(1)</script>";
    RunBuilder run(1);
    add_two_gpus(run, hostile);
    run.sink().add(schema::RunInfoRow{"command", hostile});
    const auto trace = run.take();
    const auto report = analysis::utilization_report(*trace, {}, kPageLanes);
    for (const std::string& page :
         {utilization_page(report, hostile, false), utilization_picture(report, hostile, false),
          job_page(reported_run(*trace, hostile + ".sqlite", {}), {})}) {
        EXPECT_THAT(page, HasSubstr("GPU 1"));
        EXPECT_THAT(page, Not(HasSubstr("<script")));
        EXPECT_THAT(page, Not(HasSubstr("<b>GPU")));
    }
}

TEST(JobPage, RedactedHasNoNameOfAMachine) {
    RunBuilder run(1);
    add_two_gpus(run, "secret-node-7");
    run.sink().add(schema::RunInfoRow{"command", "/home/somebody/train --on secret-node-7"});
    const auto trace = run.take();
    const auto report = analysis::utilization_report(*trace, {}, kPageLanes);
    for (const std::string& page :
         {utilization_page(report, "x", true), utilization_picture(report, "x", true),
          job_page(reported_run(*trace, "x.sqlite", {}), {.title = "", .redact = true})}) {
        EXPECT_THAT(page, Not(HasSubstr("secret-node-7")));
        EXPECT_THAT(page, Not(HasSubstr("somebody")));
    }
}

TEST(JobPage, SaysWhatRanAndWhatItCost) {
    RunBuilder run(1);
    add_two_gpus(run);
    run.sink().add(schema::RunInfoRow{"command", "torchrun train.py"});
    const auto trace = run.take();
    const std::string page = job_page(reported_run(*trace, "a/run.sqlite", {}, 360), {});
    EXPECT_THAT(page, HasSubstr("<h1>Job run.sqlite</h1>"));
    EXPECT_THAT(page, HasSubstr("torchrun train.py"));
    EXPECT_THAT(page, HasSubstr("1 of 2 devices worked"));
    EXPECT_THAT(page, HasSubstr("A device that the job may use does nothing"));
    EXPECT_THAT(page, HasSubstr("<b>2.00</b><span>cost, at 360.00 a device hour"));
    EXPECT_THAT(job_page(reported_run(*trace, "a/run.sqlite", {}), {}), HasSubstr("no price is known"));
}

TEST(JobPage, OfARunWithoutSamplesSaysSo) {
    RunBuilder run(2);
    run.step(0, 0, 0, 1000);
    run.kernel(0, 100, 900, 50);
    const std::string page = job_page(reported_run(*run.take(), "run.sqlite", {}), {});
    EXPECT_THAT(page, HasSubstr("Nothing of them was sampled"));
    EXPECT_THAT(page, Not(HasSubstr("0.0 %</b>")));
}

TEST(JobPage, OfAThousandDevicesStaysSmall) {
    RunBuilder run(1);
    for (int gpu = 0; gpu < 1000; ++gpu) {
        const std::string host = "node" + std::to_string(gpu / 8);
        for (int i = 0; i <= 200; ++i)
            run.sink().add(schema::CounterRow{.time = i * kPeriod,
                                              .rank = -1,
                                              .name = run.sink().intern("gpu_utilization_percent"),
                                              .value = static_cast<double>((i * 37 + gpu) % 100),
                                              .host = run.sink().intern(host),
                                              .device = gpu % 8});
    }
    const auto trace = run.take();
    const auto report = analysis::utilization_report(*trace, {}, kPageLanes);
    EXPECT_EQ(report.devices.size(), 1001U);  // with that of the run's rank
    EXPECT_LT(utilization_page(report, "big", false).size(), 4'000'000U);
    EXPECT_LT(utilization_picture(report, "big", false).size(), 3'000'000U);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::report
