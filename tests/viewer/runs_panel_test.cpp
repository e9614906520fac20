// The Runs panel, drawn without a screen.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "tests/viewer/panel_fixture.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RunsPanelTest : public PanelsTest {
  protected:
    RunsPanelTest() { draw::items::keep(true); }
};

TEST_F(RunsPanelTest, PutsKeyFiguresSideBySide) {
    open_root_and_linear();
    draw(*make_panel("runs"));
    EXPECT_EQ(item("runs.files.rows"), "2");
    const auto figures = traces::analysis::compare({session_.open[0].trace.get()});
    EXPECT_EQ(item("runs.files.root.sqlite.average_step_us"),
              draw::format_decimal(figures.runs[0].average_step_us, 1));
    EXPECT_EQ(item("runs.files.root.sqlite.peak_mb"), "18.16");
    EXPECT_EQ(item("runs.files.linear.sqlite.faults"),
              std::to_string(traces::analysis::check_trace(*session_.open[1].trace).size()));
}

TEST_F(RunsPanelTest, EndsWithHoweverManyRuns) {
    constexpr int kOpen = 80;  // each makes four queries in every frame
    for (int i = 0; i < kOpen; ++i) open({.steps = 1}, ("run" + std::to_string(i) + ".sqlite").c_str());
    draw(*make_panel("runs"));
    EXPECT_EQ(item("runs.files.rows"), std::to_string(kOpen));
}

TEST_F(RunsPanelTest, ShowsOnlyWhatDiffersOnRequest) {
    open_root_and_linear();
    const auto panel = make_panel("runs");
    draw(*panel);
    EXPECT_EQ(item("runs.value.differences"), "1");
    EXPECT_EQ(item("runs.configuration.fsdp.wrap.run_1"), "module:Linear");
    click(*panel, "runs.only_differences");
    EXPECT_EQ(item("runs.configuration.rows"), "1");
}

TEST_F(RunsPanelTest, AClickChoosesTheRunAndAButtonLeadsToAPanel) {
    open_root_and_linear();
    const auto panel = make_panel("runs");
    draw(*panel);
    click(*panel, "runs.files.row.1", false, kNearLeft);
    EXPECT_EQ(session_.active, 1U);
    EXPECT_EQ(item("runs.value.active"), "linear.sqlite");
    click(*panel, "runs.go.memory");
    EXPECT_EQ(session_.wanted_panel, "memory");
}

TEST_F(RunsPanelTest, ShowsFaultsAsSentences) {
    traces::RunBuilder run;
    run.kernel(0, 10, 20);  // without a launch
    session_.add_trace(run.take(), "run.sqlite");
    const auto faults = traces::analysis::check_trace(*session_.trace());
    ASSERT_FALSE(faults.empty());
    std::string text = draw(*make_panel("runs"));
    std::replace(text.begin(), text.end(), '\n', ' ');  // it wraps
    EXPECT_THAT(text, HasSubstr(faults.front()));
}

TEST_F(RunsPanelTest, ARunInProgressIsNotAFault) {
    traces::RunBuilder run;
    run.kernel(0, 10, 20, 5);
    auto trace = run.take();
    trace->ended = false;
    session_.add_trace(std::move(trace), "live.sqlite");
    const auto panel = make_panel("runs");
    EXPECT_THAT(draw(*panel), HasSubstr("The run did not end"));
    const int faults = std::stoi(item("runs.value.faults"));
    EXPECT_EQ(item("runs.files.live.sqlite.state"), "stopped without finishing");
    session_.current()->grew = std::chrono::steady_clock::now();
    EXPECT_THAT(draw(*panel),
                AllOf(HasSubstr("The run is in progress"), Not(HasSubstr("The run did not end"))));
    EXPECT_EQ(item("runs.value.faults"), std::to_string(faults - 1));
    EXPECT_EQ(item("runs.files.live.sqlite.state"), "running");
    EXPECT_EQ(item("runs.files.live.sqlite.faults"), std::to_string(faults - 1));
}

TEST_F(RunsPanelTest, ForeignTracesSayThatTheyNameNoConfiguration) {
    traces::RunBuilder run;
    run.kernel(0, 10, 20, 5);
    session_.add_trace(run.take(), "kineto.json");
    EXPECT_THAT(draw(*make_panel("runs")),
                AllOf(HasSubstr("name no configuration"), HasSubstr("shardscope-train")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
