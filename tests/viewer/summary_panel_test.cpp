// The Execution Summary, drawn without a screen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/analysis/time/steps.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::HasSubstr;

class SummaryPanelTest : public PanelsTest {
  protected:
    SummaryPanelTest() { draw::items::keep(true); }
};

TEST_F(SummaryPanelTest, HasTheNumbersOfTheAnalysis) {
    open({}, "root.sqlite");
    draw(*make_panel("summary"));
    const auto summary = traces::analysis::summarize(*session_.trace());
    const traces::analysis::RankSummary& rank = summary.ranks[0];
    EXPECT_EQ(item("summary.categories.Kernel.us"), draw::format_decimal(rank.average_us[0], 1));
    EXPECT_EQ(item("summary.categories.Average Step Time.us"), draw::format_decimal(rank.average_step_us, 1));
    EXPECT_EQ(item("summary.categories.Communication.percent"),
              draw::format_decimal(rank.percent(traces::analysis::TimeCategory::communication), 2));
}

TEST_F(SummaryPanelTest, FoldsCommunicationIntoKernelForSevenRows) {
    open({}, "root.sqlite");
    const auto panel = make_panel("summary");
    draw(*panel);
    EXPECT_EQ(item("summary.categories.rows"), "9");
    click(*panel, "summary.fold_communication");
    EXPECT_EQ(item("summary.categories.rows"), "8") << "the mean and seven categories";
    const auto folded =
        traces::analysis::summarize(*session_.trace(), {}, traces::analysis::CommunicationAs::kernel);
    EXPECT_EQ(item("summary.categories.Kernel.us"), draw::format_decimal(folded.ranks[0].average_us[0], 1));
}

TEST_F(SummaryPanelTest, KeepsItsNumbersAndTabsInANarrowPane) {
    open({.ranks = 3, .steps = 4}, "root.sqlite");
    const auto panel = make_panel("summary");
    constexpr float kWidth = 380;
    draw(*panel, kWidth);
    EXPECT_NE(item("summary.categories.Kernel.us"), "");
    EXPECT_NE(item("summary.categories.Kernel.percent"), "");
    for (const char* tab : {"every_step", "table_of_steps", "every_rank", "table_of_ranks"}) {
        const auto button = draw::items::find(std::string("summary.view.") + tab);
        ASSERT_TRUE(button) << tab;
        EXPECT_LE(button->max.x, kWidth) << tab;
    }
}

TEST_F(SummaryPanelTest, TablesListEveryStepAndRank) {
    open({.ranks = 3, .steps = 4}, "root.sqlite");
    const auto panel = make_panel("summary");
    draw(*panel);
    click(*panel, "summary.view.table_of_steps");
    EXPECT_EQ(item("summary.steps.rows"), "4");
    click(*panel, "summary.view.table_of_ranks");
    EXPECT_EQ(item("summary.ranks.rows"), "3");
    click(*panel, "summary.ranks.row.2");
    EXPECT_EQ(session_.rank, traces::store::RankIndex(2));
}

TEST_F(SummaryPanelTest, AStepsBarLeadsToTheTimeline) {
    open({.steps = 3}, "root.sqlite");
    const auto panel = make_panel("summary");
    draw(*panel);
    const auto summary = traces::analysis::summarize(*session_.trace());
    const traces::analysis::StepSummary& step = summary.ranks[0].steps[1];
    click(*panel, "summary.step_bar." + std::to_string(step.number));
    EXPECT_EQ(session_.wanted_panel, "timeline");
    EXPECT_EQ(session_.open[0].visible, (model::TimeRange{step.window_start, step.window_end}));
    EXPECT_EQ(session_.open[0].lit, session_.open[0].visible) << "the timeline says which time is meant";
}

TEST_F(SummaryPanelTest, NamesTheWindowAndTheHostStepApart) {
    open({.steps = 3}, "root.sqlite");
    const auto panel = make_panel("summary");
    EXPECT_THAT(draw(*panel), HasSubstr("Times are of a step's window"));
    click(*panel, "summary.view.table_of_steps");
    const auto details = traces::analysis::steps_report(*session_.trace()).ranks[0].steps[1];
    const std::string row = "summary.steps." + std::to_string(details.summary.number);
    EXPECT_EQ(item(row + ".window_us"),
              draw::format_decimal(static_cast<double>(details.window()) * 1e-3, 1));
    EXPECT_EQ(item(row + ".host_us"),
              draw::format_decimal(static_cast<double>(details.host_end - details.host_start) * 1e-3, 1));
    EXPECT_EQ(item("summary.steps.header.window_us"), "Window");
    EXPECT_EQ(item("summary.steps.header.host_us"), "Host step");
}

TEST_F(SummaryPanelTest, ObeysTheLimitRange) {
    open({.steps = 3}, "root.sqlite");
    const auto whole = traces::analysis::summarize(*session_.trace());
    const traces::analysis::StepSummary& step = whole.ranks[0].steps[1];
    session_.open[0].limit = model::TimeRange{step.window_start, step.window_end};
    EXPECT_THAT(draw(*make_panel("summary")), HasSubstr("a time filter is set"));
    const auto part =
        traces::analysis::summarize(*session_.trace(), model::Session::selection(session_.open[0]));
    EXPECT_EQ(item("summary.value.steps"), std::to_string(part.ranks[0].steps.size()));
    EXPECT_LT(part.ranks[0].steps.size(), whole.ranks[0].steps.size());
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
