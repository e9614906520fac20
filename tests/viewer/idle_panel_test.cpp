// Idle time and the critical path on the screen: the reports' numbers, and the link to a gap.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/time/idle.h"
#include "viewer/draw/format.h"
#include "viewer/panels/idle/idle_rows.h"
#include "viewer/panels/idle/path_rows.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using ::testing::HasSubstr;

class IdlePanelTest : public PanelsTest {
  protected:
    IdlePanelTest() {
        draw::items::keep(true);
        open({}, "root.sqlite");
    }
    // Clicks near the left, because the rows of the tables are wide.
    void click(model::Panel& panel, const std::string& name) {
        PanelsTest::click(panel, name, false, kNearLeft);
    }
};

TEST_F(IdlePanelTest, ShowsEachStreamAsTheReportDoes) {
    const auto report = traces::analysis::idle_report(*session_.trace());
    const auto panel = make_panel("idle");
    draw(*panel);
    const traces::analysis::StreamIdle& device = report.ranks.front().device;
    EXPECT_EQ(item("idle.streams.all as one.span_us"), us_text(device.span));
    EXPECT_EQ(item("idle.streams.all as one.host_wait_us"),
              us_text(device.gap(traces::analysis::GapKind::host_wait).ns));
    for (const traces::analysis::StreamIdle& stream : report.ranks.front().streams) {
        const std::string row = "idle.streams." + idle_stream_title(stream, false);
        EXPECT_EQ(item(row + ".events"), draw::format_count(stream.events));
        EXPECT_EQ(item(row + ".other_us"), us_text(stream.gap(traces::analysis::GapKind::other).ns));
    }
}

TEST_F(IdlePanelTest, AClickOnTheLongestGapShowsItInTheTimeline) {
    const auto details = traces::analysis::idle_details(*session_.trace(), {}, 1000);
    const traces::analysis::IdleGap& longest = details.ranks.front().streams.front().gaps.front();
    const auto panel = make_panel("idle");
    draw(*panel);
    EXPECT_EQ(item("idle.gaps.1.us"), us_text(longest.length()));
    click(*panel, "idle.gaps.row.0");
    EXPECT_EQ(session_.wanted_panel, "timeline");
    EXPECT_EQ(session_.selected, (model::SelectedEvent{model::EventKind::device, longest.event}));
    EXPECT_LE(session_.current()->visible.from, longest.from);
    EXPECT_GE(session_.current()->visible.to, longest.to);
}

TEST_F(IdlePanelTest, ThePathIsThatOfTheReport) {
    const auto report = traces::analysis::critical_path(*session_.trace(), {}, {}, true);
    ASSERT_TRUE(report.job);
    const auto panel = make_panel("idle");
    draw(*panel);
    click(*panel, "idle.view.critical_path");
    draw(*panel);
    EXPECT_EQ(item("idle.path.Job"), draw::format_duration(report.job->average_step_us * 1e3));
    EXPECT_EQ(item("idle.path.Rank 0"), draw::format_duration(report.ranks.front().average_step_us * 1e3));
    // The largest share whose name identifies one kind of time: a collective has a launch delay, too.
    const auto& shares = report.job->shares;
    const auto most =
        std::find_if(shares.begin(), shares.end(), [&](const traces::analysis::PathShare& share) {
            return std::count_if(shares.begin(), shares.end(), [&](const traces::analysis::PathShare& other) {
                       return other.name == share.name;
                   }) == 1;
        });
    ASSERT_NE(most, shares.end());
    EXPECT_EQ(item("idle.path_names." + most->name + ".us"), us_text(std::llround(most->us * 1e3)));
}

TEST_F(IdlePanelTest, AWhatIfShowsTheAnalysissPrediction) {
    traces::analysis::PathFactors factors = traces::analysis::kUnscaled;
    factors[static_cast<std::size_t>(traces::analysis::PathKind::communication)] = 0.5;
    const auto scaled = traces::analysis::critical_path(*session_.trace(), {}, factors);
    const auto panel = make_panel("idle");
    draw(*panel);
    click(*panel, "idle.view.critical_path");
    draw(*panel);
    click(*panel, "idle.what_if.communication_half");
    draw(*panel);
    EXPECT_THAT(item("idle.what_if.prediction"),
                HasSubstr(draw::format_duration(scaled.job->predicted_step_us * 1e3) + " instead of " +
                          draw::format_duration(scaled.job->whole_step_us * 1e3)));
}

TEST_F(IdlePanelTest, PiecesOfThePathAreRowsInOrderOfTime) {
    const auto trace = session_.trace();
    const auto report = std::make_shared<const traces::analysis::CriticalPathReport>(
        traces::analysis::critical_path(*trace, {}, {}, true));
    const PathPieceTable table(trace, report, report->ranks.front());
    ASSERT_GT(table.rows(), 2U);
    double us = 0;
    for (std::size_t row = 0; row < table.rows(); ++row) us += table.number(row, 4);
    double steps = 0;
    for (const traces::analysis::StepPath& step : report->ranks.front().steps)
        steps += static_cast<double>(step.ns) * 1e-3;
    EXPECT_NEAR(us, steps, 1e-6);
    EXPECT_EQ(table.text(0, 0), "1");
    EXPECT_EQ(table.text(0, 2), path_kind_title(table.piece(0).kind));
}

TEST_F(IdlePanelTest, ANameOfThePathLeadsToItsLongestPiece) {
    const auto report = traces::analysis::critical_path(*session_.trace(), {}, {}, true);
    const traces::analysis::RankPath& job = *report.job;
    const traces::analysis::PathShare& most = job.shares.front();
    std::int64_t longest = -1;
    for (const traces::analysis::PathPiece& piece : job.pieces) {
        if (piece.kind == most.kind && piece.name == most.name)
            longest = std::max(longest, piece.to - piece.from);
    }
    const std::vector<std::int64_t> found = longest_pieces(job);
    ASSERT_EQ(found.size(), job.shares.size());
    const traces::analysis::PathPiece& piece = job.pieces[static_cast<std::size_t>(found.front())];
    EXPECT_EQ(piece.to - piece.from, longest);

    const auto panel = make_panel("idle");
    draw(*panel);
    click(*panel, "idle.view.critical_path");
    draw(*panel);
    click(*panel, "idle.path_names.row.0");
    EXPECT_EQ(session_.wanted_panel, "") << "one click chooses";
    PanelsTest::click(*panel, "idle.path_names.row.0", true, kNearLeft);
    EXPECT_EQ(session_.wanted_panel, "timeline");
    EXPECT_LE(session_.current()->visible.from, piece.from);
    EXPECT_GE(session_.current()->visible.to, piece.to);
}

TEST(IdleRows, AHistogramReachesFromTheFirstToTheLastBinThatHoldsSomething) {
    traces::analysis::StreamIdleDetails stream;
    stream.delays[traces::analysis::length_bin(1500)] = 3;  // 1024 to 2048 ns
    stream.delays[traces::analysis::length_bin(5000)] = 1;  // 4096 to 8192 ns
    const auto bins = delay_histogram(stream);
    ASSERT_EQ(bins.size(), 3U);
    EXPECT_EQ(bins[0].value, 3);
    EXPECT_EQ(bins[1].value, 0);
    EXPECT_EQ(bins[2].value, 1);
    EXPECT_EQ(bins[0].title, draw::format_duration(1024) + " to " + draw::format_duration(2048));
    EXPECT_TRUE(queue_histogram(stream).empty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
