// The compare panel's tables of parts: kernels by name, modules as a tree joined by path.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "viewer/panels/compare/compare_tables.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using traces::analysis::CompareBy;
using traces::analysis::ComparedPart;
using traces::analysis::PartFigures;
using traces::analysis::PartsComparison;

const std::vector<RunHead> kRuns = {{"wrap=root", 0xFF0000FF}, {"wrap=module:Linear", 0xFF00FF00}};

PartFigures figures(double us, double times, double spread = 0) {
    PartFigures f;
    f.present = true;
    f.us = us;
    f.times = times;
    f.spread.spread = spread;
    return f;
}

std::shared_ptr<PartsComparison> two_runs(CompareBy by, std::vector<ComparedPart> parts) {
    auto comparison = std::make_shared<PartsComparison>();
    comparison->by = by;
    comparison->whole.runs.resize(2);
    comparison->whole.runs[0].mean_steps = 10;
    comparison->whole.runs[1].mean_steps = 20;
    comparison->parts = std::move(parts);
    return comparison;
}

std::size_t column(const tables::TableModel& model, const std::string& id) {
    for (std::size_t c = 0; c < model.columns().size(); ++c) {
        if (model.columns()[c].id == id) return c;
    }
    ADD_FAILURE() << "no column " << id;
    return 0;
}

std::string cell(const tables::TableModel& model, std::size_t row, const std::string& id) {
    return model.text(row, column(model, id));
}

TEST(PartsModel, ShowsTheDifferenceAndItsPercentageForEveryRun) {
    const PartsModel model(two_runs(CompareBy::kernel, {{"gemm", {figures(100, 4, 1), figures(150, 6, 2)}}}),
                           kRuns, true);
    EXPECT_EQ(cell(model, 0, "name"), "gemm");
    EXPECT_EQ(cell(model, 0, "run1_us"), "100.0");
    EXPECT_EQ(cell(model, 0, "run2_us"), "150.0");
    EXPECT_EQ(cell(model, 0, "run2_difference_us"), "+50.0");
    EXPECT_EQ(cell(model, 0, "run2_percent"), "+50.0");  // 100 * 50 / 100
    EXPECT_EQ(cell(model, 0, "run1_times"), "4");
    EXPECT_DOUBLE_EQ(model.number(0, column(model, "run2_difference_us")), 50);
    EXPECT_EQ(model.ink(0, column(model, "run2_percent")), theme::bad());
    EXPECT_EQ(model.columns()[column(model, "run2_us")].bar, kRuns[1].color);
}

TEST(PartsModel, ADifferenceInsideTheSpreadIsMarkedAndNotJudged) {
    const PartsModel model(two_runs(CompareBy::kernel, {{"gemm", {figures(100, 4, 8), figures(95, 4, 1)}}}),
                           kRuns, true);
    EXPECT_EQ(cell(model, 0, "run2_percent"), "-5.0 ~");
    EXPECT_EQ(model.ink(0, column(model, "run2_percent")), theme::text_dim());
}

TEST(PartsModel, TheKeptStepsCountWithoutNormalising) {
    const PartsModel model(two_runs(CompareBy::kernel, {{"gemm", {figures(100, 4), figures(100, 4)}}}), kRuns,
                           false);
    EXPECT_EQ(cell(model, 0, "run1_us"), "1,000.0");  // 10 steps of 100 us
    EXPECT_EQ(cell(model, 0, "run2_us"), "2,000.0");  // 20 steps
    EXPECT_EQ(cell(model, 0, "run2_percent"), "+100.0");
    EXPECT_EQ(cell(model, 0, "run2_times"), "80");
}

TEST(PartsModel, APartThatOneRunLacksIsNewOrGone) {
    const PartsModel model(two_runs(CompareBy::kernel, {{"new", {PartFigures{}, figures(5, 1)}},
                                                        {"old", {figures(5, 1), PartFigures{}}}}),
                           kRuns, true);
    EXPECT_EQ(cell(model, 0, "run1_us"), "-");
    EXPECT_EQ(cell(model, 0, "run2_percent"), "new");
    EXPECT_EQ(cell(model, 1, "run2_us"), "-");
    EXPECT_EQ(cell(model, 1, "run2_percent"), "gone");
    EXPECT_EQ(cell(model, 1, "run2_difference_us"), "-5.0");
    EXPECT_EQ(model.ink(1, column(model, "run2_percent")), theme::text_dim()) << "neither better nor worse";
}

TEST(PartsModel, APartThatNeitherRunHasDoesNotDiffer) {
    const std::vector<RunHead> three = {{"a", 1}, {"b", 2}, {"c", 3}};
    auto comparison = two_runs(CompareBy::kernel, {{"gemm", {PartFigures{}, figures(5, 1), PartFigures{}}}});
    comparison->whole.runs.resize(3);
    const PartsModel model(comparison, three, true);
    EXPECT_EQ(cell(model, 0, "run3_difference_us"), "-");
    EXPECT_EQ(cell(model, 0, "run3_percent"), "-");
    EXPECT_EQ(cell(model, 0, "run2_difference_us"), "+5.0");
}

TEST(RunColumnHeads, AreTheNamesWhereTheyFitAndElseNumbersOverAllOfThem) {
    using testing::ElementsAre;
    EXPECT_THAT(run_column_heads(kRuns).titles, ElementsAre("1: wrap=root", "2: wrap=module:Linear"));
    EXPECT_THAT(run_column_heads({{"a", 1}, {"wrap=module:Block  cpu_offload=false", 2}}).titles,
                ElementsAre("Run 1", "Run 2"));
    EXPECT_THAT(run_column_heads({{"a", 1}, {"b", 2}, {"wrap=module:Linear", 3}}).titles,
                ElementsAre("Run 1", "Run 2", "Run 3"))
        << "three columns leave less room to each";
    EXPECT_GT(run_column_heads(kRuns).width, run_column_heads({{"a", 1}}).width);
}

TEST(PartsModel, CollectivesHaveTheirBytes) {
    PartFigures gather = figures(10, 2);
    gather.bytes = 3.0 * 1024 * 1024;
    const PartsModel model(two_runs(CompareBy::collective, {{"all_gather, net.0", {gather, gather}}}), kRuns,
                           true);
    EXPECT_EQ(cell(model, 0, "run1_mb"), "3.00");
}

TEST(ComparedModules, AreATreeWhoseTotalsAreOwnAndBelow) {
    const auto comparison =
        two_runs(CompareBy::module, {{"Net_0/Block_10", {figures(7, 1), figures(7, 1)}},
                                     {"Net_0/Block_2", {figures(100, 1), figures(60, 1)}},
                                     {"Net_0", {figures(3, 1), figures(3, 1)}},
                                     {"Net_0/Block_2/Linear_0", {PartFigures{}, figures(20, 1)}}});
    const ComparedModules model(comparison, kRuns, true);
    ASSERT_EQ(model.rows(), 4U);
    EXPECT_EQ(model.node(0).path, "Net_0");
    EXPECT_EQ(model.node(1).path, "Net_0/Block_2") << "2 before 10";
    EXPECT_EQ(model.node(2).path, "Net_0/Block_2/Linear_0");
    EXPECT_EQ(model.node(3).path, "Net_0/Block_10");
    EXPECT_EQ(cell(model, 0, "run1_us"), "110.0");  // 3 + 7 + 100
    EXPECT_EQ(cell(model, 0, "run2_us"), "90.0");   // 3 + 7 + 60 + 20
    EXPECT_EQ(cell(model, 0, "run2_difference_us"), "-20.0");
    EXPECT_EQ(cell(model, 0, "run2_percent"), "-18.2");  // -20 of 110
    EXPECT_EQ(cell(model, 1, "run2_us"), "80.0");
    EXPECT_EQ(cell(model, 1, "run2_self_us"), "60.0");
    EXPECT_EQ(cell(model, 2, "run1_us"), "-");
    EXPECT_EQ(cell(model, 2, "run2_percent"), "new");
    EXPECT_EQ(model.ink(0, column(model, "run2_percent")), theme::good());
}

TEST(ComparedModules, AModuleThatOnlyHasChildrenIsThereToo) {
    const auto comparison = two_runs(CompareBy::module, {{"A_0/B_0/C_0", {figures(5, 1), figures(5, 1)}}});
    const ComparedModules model(comparison, kRuns, true);
    ASSERT_EQ(model.rows(), 3U);
    EXPECT_EQ(cell(model, 0, "run1_us"), "5.0");
    EXPECT_EQ(cell(model, 0, "run2_percent"), "0.0");
}

TEST(Change, IsInPercentOfTheFirst) {
    EXPECT_EQ(change_text(true, 90, true, 100, false), "-10.0");
    EXPECT_EQ(change_text(true, 0, true, 0, false), "0.0");
    EXPECT_EQ(change_text(true, 5, true, 0, false), "new");
    EXPECT_EQ(change_text(false, 0, false, 0, false), "-");
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
