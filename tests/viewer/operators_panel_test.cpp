// Operators and kernels: the panels show the reports' numbers, and link to the events.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/kernels.h"
#include "viewer/draw/format.h"
#include "viewer/panels/work/operator_rows.h"
#include "viewer/timeline/color_modes.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using ::testing::HasSubstr;

class OperatorsPanelTest : public PanelsTest {
  protected:
    OperatorsPanelTest() {
        draw::items::keep(true);
        open({}, "root.sqlite");
    }
    // Clicks near the left, because the rows of the tables are wide.
    void click(model::Panel& panel, const std::string& name) {
        PanelsTest::click(panel, name, false, kNearLeft);
    }
};

TEST_F(OperatorsPanelTest, ShowsTheRowsOfTheReport) {
    const auto report = traces::analysis::operators_report(*session_.trace());
    ASSERT_FALSE(report.ranks.front().operators.empty());
    const auto panel = make_panel("operators");
    const std::string text = draw(*panel);
    EXPECT_THAT(text, HasSubstr(draw::format_count(report.ranks.front().calls) + " calls"));
    const traces::analysis::OperatorStats& first = report.ranks.front().operators.front();
    const std::string row = "operators." + std::string(first.name);
    EXPECT_EQ(item(row + ".calls"), draw::format_count(first.calls));
    EXPECT_EQ(item(row + ".device_self_us"), us_text(first.device_self));
    EXPECT_EQ(item(row + ".host_us"), us_text(first.host_total));
    EXPECT_EQ(item("operators.rows"), std::to_string(report.ranks.front().operators.size()));
}

TEST_F(OperatorsPanelTest, ALimitRangeHoldsForItToo) {
    model::OpenTrace& entry = *session_.current();
    const auto middle = (entry.trace->first_ns + entry.trace->last_ns) / 2;
    entry.limit = model::TimeRange{entry.trace->first_ns, middle};
    const auto report =
        traces::analysis::operators_report(*session_.trace(), model::Session::selection(entry));
    const auto panel = make_panel("operators");
    EXPECT_THAT(draw(*panel), HasSubstr(draw::format_count(report.ranks.front().calls) + " calls"));
    EXPECT_LT(report.ranks.front().calls,
              traces::analysis::operators_report(*session_.trace()).ranks.front().calls);
}

TEST_F(OperatorsPanelTest, KernelsShowTheRowsOfTheReport) {
    const auto report = traces::analysis::kernels_report(*session_.trace());
    const traces::analysis::RankKernels& rank = report.ranks.front();
    const auto panel = make_panel("kernels");
    draw(*panel);
    for (const traces::analysis::KernelStats& kernel : rank.kernels) {
        const std::string row = "kernels." + std::string(kernel.name);
        EXPECT_EQ(item(row + ".count"), draw::format_count(kernel.count));
        EXPECT_EQ(item(row + ".us"), us_text(kernel.total));
        EXPECT_EQ(item(row + ".max_us"), us_text(kernel.longest));
        EXPECT_EQ(item(row + ".percent"), draw::format_decimal(kernel.share, 2));
    }
}

TEST_F(OperatorsPanelTest, TheLongestKernelOfARowIsShownInTheTimeline) {
    const auto panel = make_panel("kernels");
    draw(*panel);
    click(*panel, "kernels.row.0");
    draw(*panel);
    const traces::store::Trace& trace = *session_.trace();
    const traces::analysis::KernelStats longest =
        traces::analysis::kernels_report(trace).ranks.front().kernels.front();
    EXPECT_THAT(item("kernels.occurrence"), HasSubstr(draw::format_count(longest.count)));
    click(*panel, "kernels.longest");
    EXPECT_EQ(session_.wanted_panel, "timeline");
    ASSERT_EQ(session_.selected.kind, model::EventKind::device);
    const auto event = static_cast<std::size_t>(session_.selected.index);
    EXPECT_EQ(trace.strings[trace.device.name[event]], longest.name);
    EXPECT_EQ(trace.device.end[event] - trace.device.start[event], longest.longest);
    EXPECT_LE(session_.current()->visible.from, trace.device.start[event]);
    EXPECT_GE(session_.current()->visible.to, trace.device.end[event]);
}

TEST_F(OperatorsPanelTest, SharesSumToTheDevicesTime) {
    const auto report = traces::analysis::kernels_report(*session_.trace());
    double us = 0, percent = 0;
    for (const NameShare& part : kernel_shares(report.ranks.front())) {
        us += part.us;
        percent += part.percent;
    }
    EXPECT_NEAR(us, static_cast<double>(report.ranks.front().total) * 1e-3, 1e-6);
    EXPECT_NEAR(percent, 100, 1e-9);
}

TEST_F(OperatorsPanelTest, TheEventsOfARowAreThoseThatItCounts) {
    const traces::store::Trace& trace = *session_.trace();
    traces::analysis::Selection selection;
    selection.rank = 0;
    const auto report = traces::analysis::operators_report(trace, selection);
    for (const traces::analysis::OperatorStats& row : report.ranks.front().operators) {
        const auto calls = traces::analysis::operator_calls(trace, selection, row.name, row.shapes, false);
        EXPECT_EQ(static_cast<std::int64_t>(calls.size()), row.calls) << row.name;
        std::int64_t total = 0;
        for (const std::uint32_t call : calls) total += trace.ranges.end[call] - trace.ranges.start[call];
        EXPECT_EQ(total, row.host_total) << row.name;
    }
}

TEST(OperatorRows, OccupancyHasAColumnOnlyWhereItIsKnown) {
    traces::analysis::RankKernels rank;
    rank.kernels.push_back({.name = "gemm", .count = 2, .total = 3000, .share = 100});
    EXPECT_EQ(kernel_table(rank)->columns().size(), 10U);
    rank.kernels.front().occupancy_percent = 37.5;
    const auto table = kernel_table(rank);
    ASSERT_EQ(table->columns().size(), 11U);
    EXPECT_EQ(table->columns().back().id, "occupancy_percent");
    EXPECT_EQ(table->text(0, 10), "37.50");
}

TEST(OperatorRows, AKernelIsCalledAsItsSourceSpellsIt) {
    traces::analysis::RankKernels rank;
    rank.kernels.push_back({.name = "_Z4gemmPf"});
    rank.kernels.push_back({.name = "void relu<4>(float*)"});
    const auto table = kernel_table(rank);
    EXPECT_EQ(table->columns().front().id, "name");
    EXPECT_EQ(table->text(0, 0), "gemm(float*)");
    EXPECT_EQ(table->text(1, 0), "void relu<4>(float*)");
}

// The colour does not depend on the place of the name in either table.
TEST(OperatorRows, ANameHasTheSameColourAmongOperatorsAndKernels) {
    std::vector<std::string> names;
    std::set<timeline::Paint> hues;
    for (char letter = 'a'; names.size() < 3; ++letter) {
        if (hues.insert(timeline::hue_of(std::string(1, letter))).second) names.emplace_back(1, letter);
    }
    traces::analysis::RankKernels kernels;
    traces::analysis::RankOperators operators;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto time = static_cast<std::int64_t>(100 - i);
        kernels.kernels.push_back({.name = names[i], .count = 1, .total = time});
        operators.operators.push_back({.name = names[names.size() - 1 - i], .calls = 1, .device_self = time});
    }
    int same = 0;
    for (const NameShare& kernel : kernel_shares(kernels)) {
        for (const NameShare& op : operator_shares(operators)) {
            if (kernel.name != op.name || kernel.row < 0) continue;
            ++same;
            EXPECT_EQ(kernel.color, op.color) << kernel.name;
        }
    }
    EXPECT_EQ(same, 3);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
