// The compare panel's table of several runs.
#include "viewer/panels/compare/compare_rows.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::ElementsAre;
using traces::analysis::Comparison;
using traces::analysis::RunColumn;

// The FSDP talk at laptop scale: root wrap and per-Linear wrap.
Comparison root_and_linear() {
    RunColumn root, linear;
    root.file = "/traces/mlp_root.sqlite";
    root.config = {{"run.trace", "mlp_root.sqlite"}, {"fsdp.wrap", "root"}};
    root.peak_bytes = 113348608;
    root.average_step_us = root.median_step_us = 1000;
    root.spread_step_us = 30;
    linear.file = "/traces/mlp_linear.sqlite";
    linear.config = {{"run.trace", "mlp_linear.sqlite"}, {"fsdp.wrap", "module:Linear"}};
    linear.peak_bytes = 46157824;
    linear.average_step_us = linear.median_step_us = 1020;  // 20 us more: within the spread of 30 us
    linear.spread_step_us = 10;
    root.steps = linear.steps = 5;
    return {{root, linear}};
}

const CompareRow& row(const std::vector<CompareRow>& rows, const std::string& label) {
    static const CompareRow kNone;
    const auto it =
        std::find_if(rows.begin(), rows.end(), [&](const CompareRow& r) { return r.label == label; });
    if (it == rows.end()) ADD_FAILURE() << "no row " << label;
    return it == rows.end() ? kNone : *it;
}

TEST(CompareTitles, SayWhatDiffersAndNoFileNames) {
    EXPECT_THAT(run_titles(root_and_linear()), ElementsAre("wrap=root", "wrap=module:Linear"));
}

TEST(CompareTitles, HaveAtMostThreeDistinguishingSettings) {
    Comparison comparison = root_and_linear();
    for (RunColumn& run : comparison.runs) {
        run.config.insert(run.config.begin(), {"optimizer.lr", "0.1"});
        run.config.emplace_back("run.ranks", "4");
        run.config.emplace_back("data.batch", "8");
    }
    EXPECT_EQ(run_titles(comparison)[0], "wrap=root  ranks=4  batch=8");
}

TEST(CompareTitles, SettingsOfTheOtherModeAreLeftOut) {
    Comparison comparison = root_and_linear();
    comparison.runs[0].config.emplace_back("parallel.mode", "ddp");
    comparison.runs[1].config.emplace_back("parallel.mode", "fsdp");
    EXPECT_THAT(run_titles(comparison), ElementsAre("mode=ddp", "mode=fsdp  wrap=module:Linear"));
}

TEST(CompareTitles, RunsOfOneConfigurationAreDistinguishedByTheirFiles) {
    Comparison comparison = root_and_linear();
    for (RunColumn& run : comparison.runs) run.config.clear();
    EXPECT_THAT(run_titles(comparison), ElementsAre("mlp_root", "mlp_linear"));
    for (RunColumn& run : comparison.runs) run.config = {{"fsdp.wrap", "root"}};
    EXPECT_THAT(run_titles(comparison), ElementsAre("wrap=root  (mlp_root)", "wrap=root  (mlp_linear)"));
}

TEST(CompareTitles, AForeignTraceIsCalledByItsFileAndItsMissingSettingsAreNoDifference) {
    Comparison comparison = root_and_linear();
    for (RunColumn& run : comparison.runs) {  // they are listed, because the foreign trace lacks them
        run.config.emplace_back("run.ranks", "4");
        run.config.emplace_back("model.type", "mlp");
    }
    RunColumn foreign;
    foreign.file = "/traces/worker0.pt.trace.json.gz";
    comparison.runs.push_back(foreign);
    EXPECT_THAT(run_titles(comparison), ElementsAre("wrap=root", "wrap=module:Linear", "worker0"));
    const auto rows = compare_rows(comparison);
    EXPECT_EQ(row(rows, "fsdp.wrap").cells[2].value, "-");
    for (const CompareRow& r : rows) EXPECT_NE(r.label, "model.type") << "both jobs say the same";
}

TEST(CompareRows, ARunWithoutStepsHasNoFiguresPerStep) {
    const auto rows = compare_rows(root_and_linear(), {true, false});
    EXPECT_EQ(row(rows, "Average step time").cells[0].value, "1.00 ms");
    EXPECT_EQ(row(rows, "Average step time").cells[1].value, "-");
    EXPECT_EQ(row(rows, "Steps in the selection").cells[1].value, "none");
    EXPECT_EQ(row(compare_rows(root_and_linear(), {false, false}), "Whole trace").cells[1].value, "1.02 ms")
        << "among themselves they compare whole";
}

TEST(CompareRows, APeakIsJudgedAgainstTheFirst) {
    const auto rows = compare_rows(root_and_linear());
    const CompareRow& peak = row(rows, "Peak allocated");
    ASSERT_EQ(peak.cells.size(), 2U);
    EXPECT_EQ(peak.cells[0].value, "108.10 MiB");
    EXPECT_EQ(peak.cells[0].change, "");
    EXPECT_EQ(peak.cells[1].value, "44.02 MiB");  // 46,157,824 / 2^20
    EXPECT_EQ(peak.cells[1].change, "-59.3 %");
    EXPECT_EQ(peak.cells[1].tone, Tone::better);
    EXPECT_NEAR(peak.cells[1].share, 46157824.0 / 113348608.0, 1e-12);
}

TEST(CompareRows, ADifferenceInsideTheSpreadIsNotJudged) {
    const auto rows = compare_rows(root_and_linear());
    const CompareRow& step = row(rows, "Average step time");
    EXPECT_EQ(step.cells[1].change, "+2.0 % ~");
    EXPECT_EQ(step.cells[1].tone, Tone::neutral);
    EXPECT_EQ(row(rows, "Spread").cells[1].value, "10.00 \u00b5s");
    EXPECT_EQ(row(rows, "Spread").cells[1].change, "") << "a share of a spread says nothing";
}

TEST(CompareRows, ADifferenceOutsideTheSpreadIs) {
    Comparison comparison = root_and_linear();
    comparison.runs[1].average_step_us = 1100;
    const auto rows = compare_rows(comparison);
    EXPECT_EQ(row(rows, "Average step time").cells[1].tone, Tone::worse);
}

TEST(CompareRows, SettingsThatDifferComeFirst) {
    const auto rows = compare_rows(root_and_linear());
    EXPECT_TRUE(rows[0].heading);
    EXPECT_EQ(rows[1].label, "fsdp.wrap");
    EXPECT_EQ(rows[1].cells[1].value, "module:Linear");
}

TEST(CompareRows, CollectivesAreCountedAStep) {
    Comparison comparison = root_and_linear();
    traces::analysis::OperationStats gathers;
    gathers.operation = traces::schema::Operation::all_gather;
    gathers.count_per_step = 2;
    gathers.bytes = 36 * 33587200LL;
    gathers.bytes_per_step = 2.0 * 33587200;
    comparison.runs[0].collectives.push_back(gathers);
    const auto rows = compare_rows(comparison);
    EXPECT_EQ(row(rows, "all_gather, count").cells[0].value, "2");
    EXPECT_EQ(row(rows, "all_gather, count").cells[1].value, "0");
    EXPECT_EQ(row(rows, "all_gather, data").cells[0].value, "64.06 MiB");  // 67,174,400 / 2^20
    comparison.runs[0].collectives[0].bytes = 0;
    EXPECT_EQ(row(compare_rows(comparison), "all_gather, data").cells[0].value, "-") << "nothing tells them";
}

TEST(CompareRows, MemoryIsOmittedWithoutAllocations) {
    Comparison comparison = root_and_linear();
    for (RunColumn& run : comparison.runs) run.peak_bytes = 0;
    for (const CompareRow& r : compare_rows(comparison)) EXPECT_NE(r.label, "Peak allocated");
}

TEST(CompareRows, ARunThatRecordedNoAllocationsHasNoPeakAndIsNotTheBetterOne) {
    Comparison comparison = root_and_linear();
    comparison.runs[1].peak_bytes = 0;
    const auto cells = row(compare_rows(comparison), "Peak allocated").cells;
    EXPECT_EQ(cells[0].value, "108.10 MiB");
    EXPECT_EQ(cells[1].value, "-");
    EXPECT_EQ(cells[1].change, "");
    EXPECT_EQ(cells[1].tone, Tone::neutral);
    std::swap(comparison.runs[0], comparison.runs[1]);
    EXPECT_EQ(row(compare_rows(comparison), "Peak allocated").cells[1].change, "")
        << "nothing to compare with";
}

TEST(CompareRows, NothingToCompareGivesNoRows) {
    EXPECT_TRUE(compare_rows({}).empty());
}

TEST(CompareRows, TheScaleIsThatOfTheLargestPeak) {
    EXPECT_EQ(largest_peak(root_and_linear()), 113348608);
}

TEST(SteadyStep, IsNearestToTheMedianAndNotTheFirst) {
    traces::analysis::RankSummary rank;
    EXPECT_EQ(steady_step(rank), nullptr);
    rank.steps = {{.number = 1, .window_start = 0, .window_end = 20}};
    EXPECT_EQ(steady_step(rank)->number, 1) << "the only one";
    rank.steps.push_back({.number = 2, .window_start = 20, .window_end = 60});
    rank.steps.push_back({.number = 3, .window_start = 60, .window_end = 70});
    rank.steps.push_back({.number = 4, .window_start = 70, .window_end = 95});
    EXPECT_EQ(steady_step(rank)->number, 4);  // the median of 40, 10 and 25
}

TEST(FileTitle, IsTheNameWithoutFoldersAndSuffix) {
    EXPECT_EQ(file_title("/a/b/root.sqlite"), "root");
    EXPECT_EQ(file_title("b/worker0.1694.pt.trace.json.gz"), "worker0.1694");
    EXPECT_EQ(file_title(".gz"), ".gz");  // the name would become empty
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
