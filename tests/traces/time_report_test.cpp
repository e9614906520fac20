// The reports about time as JSON, CSV and tables: fixed keys, folded communication, long kernel names.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/run_builder.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/time/temporal.h"
#include "traces/report/report.h"
#include "traces/report/text_table.h"

namespace shardscope::traces::report {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// Two steps of 400 ns: compute 100..200, communication 150..250.
std::unique_ptr<store::Trace> trace_of_two_steps() {
    RunBuilder run;
    for (int s = 0; s < 2; ++s) {
        const std::int64_t at = 1000 * s;
        run.step(0, s, at, at + 400);
        run.kernel(0, at + 100, at + 200, at + 10);
        run.collective(0, at + 150, at + 250, {.launched = at + 20});
        run.range(0, at + 5, at + 15, "aten::mm");
    }
    return run.take();
}

TEST(TimeReport, OverlapHasItsFixedKeysPerStepOnAverage) {
    const auto trace = trace_of_two_steps();
    const Json rank = Json::parse(render(analysis::overlap_report(*trace), Format::json))["ranks"][0];
    EXPECT_EQ(rank["rank"], 0);
    EXPECT_DOUBLE_EQ(rank["computation_us"], 0.05);
    EXPECT_DOUBLE_EQ(rank["overlapped_us"], 0.05);
    EXPECT_DOUBLE_EQ(rank["exposed_communication_us"], 0.05);
    EXPECT_DOUBLE_EQ(rank["other_us"], 0.25);
    EXPECT_DOUBLE_EQ(rank["overlap_percent"], 50.0);
    EXPECT_EQ(rank["per_step"].size(), 2u);
}

TEST(TimeReport, NothingIsOverlappedWithoutCommunication) {
    RunBuilder run;
    run.step(0, 0, 0, 400);
    run.kernel(0, 100, 200, 10);
    const auto trace = run.take();
    const analysis::OverlapReport report = analysis::overlap_report(*trace);
    const Json rank = Json::parse(render(report, Format::json))["ranks"][0];
    EXPECT_TRUE(rank["overlap_percent"].is_null());
    EXPECT_TRUE(rank["per_step"][0]["overlap_percent"].is_null());
    EXPECT_TRUE(rank["device_time"]["overlap_percent"].is_null());
    EXPECT_EQ(render(report, Format::csv),
              "rank,step,window_us,computation_us,overlapped_us,exposed_communication_us,other_us,"
              "overlap_percent\n0,0,0.4,0.1,0,0,0.3,\n");
}

TEST(TimeReport, FoldedCommunicationHasNoRow) {
    const auto trace = trace_of_two_steps();
    const analysis::ExecutionSummary folded = summarize(*trace, {}, analysis::CommunicationAs::kernel);
    const Json categories = Json::parse(render(folded, Format::json))["ranks"][0]["categories"];
    EXPECT_EQ(categories.size(), 7u);
    EXPECT_FALSE(categories.contains("Communication"));
    EXPECT_DOUBLE_EQ(categories["Kernel"]["us"], 0.15);  // 100..250
    EXPECT_THAT(render(folded, Format::table), Not(HasSubstr("Communication ")));
    EXPECT_THAT(render(folded, Format::csv), Not(HasSubstr("Communication")));
    const analysis::ExecutionSummary plain = analysis::summarize(*trace);
    EXPECT_EQ(Json::parse(render(plain, Format::json))["ranks"][0]["categories"].size(), 8u);
}

// One header line and one line per row; every line has as many cells as the header.
void expect_csv(const std::string& csv, long rows) {
    const std::string header = csv.substr(0, csv.find('\n'));
    const auto commas = std::count(header.begin(), header.end(), ',');
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), rows + 1) << csv;
    EXPECT_EQ(std::count(csv.begin(), csv.end(), ','), commas * (rows + 1)) << csv;
}

TEST(TimeReport, CsvHasALineForEachRow) {
    const auto trace = trace_of_two_steps();
    expect_csv(render(analysis::overlap_report(*trace), Format::csv), 2);
    expect_csv(render(analysis::temporal_breakdown(*trace), Format::csv), 1 + 2);  // the whole, and the steps
    expect_csv(render(analysis::steps_report(*trace), Format::csv), 2);
    expect_csv(render(analysis::idle_report(*trace), Format::csv), 1 + 2);  // the device, and two streams
    expect_csv(render(analysis::kernels_report(*trace), Format::csv), 2);
    expect_csv(render(analysis::operators_report(*trace), Format::csv), 1);
}

TEST(TimeReport, TablesSayWhenNothingIsSelectedOrRecorded) {
    const auto trace = trace_of_two_steps();
    const analysis::Selection nobody{.rank = 7};
    for (const std::string& text : {render(overlap_report(*trace, nobody), Format::table),
                                    render(temporal_breakdown(*trace, nobody), Format::table),
                                    render(steps_report(*trace, nobody), Format::table),
                                    render(idle_report(*trace, nobody), Format::table),
                                    render(kernels_report(*trace, nobody), Format::table),
                                    render(operators_report(*trace, nobody), Format::table)}) {
        EXPECT_THAT(text, HasSubstr("The current selection has no rank"));
    }
    EXPECT_THAT(render(analysis::kernels_report(*trace, {}, 1), Format::table), HasSubstr("the first 1"));
    const RankRows none{.key = "copies", .nothing = "No copies.", .ranks = {0}, .table = {}};
    EXPECT_EQ(render(none, Format::table), "No copies.\n");
}

TEST(TimeReport, KernelNamesLoseReturnTypeAndParametersBeforeTheirMiddle) {
    EXPECT_EQ(analysis::kernel_label("void f<4>(int, g(float))"), "f<4>");
    EXPECT_EQ(analysis::kernel_label("ncclDevKernel_AllGather_RING_LL"), "ncclDevKernel_AllGather_RING_LL");
    EXPECT_EQ(analysis::kernel_label("(int)"), "(int)");
    EXPECT_EQ(analysis::kernel_label("a)"), "a)");
    EXPECT_LE(shortened(analysis::kernel_label(std::string(1000, 'x')), 40).size(),
              40u + 2);  // "…" takes three bytes
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::report
