// Compare drawn without a screen: its pages, the choice of runs and of the base, and the effect of a click.
#include <memory>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/analysis/compare/compare_parts.h"
#include "viewer/draw/format.h"
#include "viewer/panels/compare/compare_runs.h"
#include "viewer/tables/table.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::HasSubstr;

class ComparePanelTest : public PanelsTest {
  protected:
    ComparePanelTest() {
        draw::items::keep(true);
        panel_ = make_panel("compare");
    }

    void click(const std::string& name, bool twice = false) { PanelsTest::click(*panel_, name, twice); }

    // A cell of the row whose first cell is `name`, in the table of the current page.
    static std::string cell(const std::string& table, const std::string& row, const std::string& column) {
        return item("compare." + table + "." + row + "." + column);
    }

    std::unique_ptr<model::Panel> panel_;
};

TEST_F(ComparePanelTest, EveryPageHasATableThatCanBeExported) {
    open_root_and_linear();
    draw(*panel_);
    for (const auto& [page, table] :
         {std::pair("overview", "compare"), std::pair("steps", "compare-steps"),
          std::pair("modules", "compare-modules"), std::pair("kernels", "compare-kernels"),
          std::pair("operators", "compare-operators"), std::pair("collectives", "compare-collectives"),
          std::pair("units", "compare-units"), std::pair("memory", "compare-memory")}) {
        click(std::string("compare.tab.") + page);
        const auto tables = tables::shown_tables();
        ASSERT_EQ(tables.size(), 1U) << page;
        EXPECT_EQ(tables[0].name, table);
        EXPECT_GT(tables[0].model->rows(), 1U) << page;
    }
}

TEST_F(ComparePanelTest, AFigureOfTheOverviewSaysWhatTheAnalysisSays) {
    open_root_and_linear();
    draw(*panel_);
    const auto ready = session_.ready();
    const traces::analysis::Comparison comparison =
        traces::analysis::compare({ready[0].get(), ready[1].get()});
    EXPECT_EQ(item("compare.Peak allocated.1"), draw::format_mb(comparison.runs[0].peak_bytes));
    EXPECT_EQ(item("compare.Peak allocated.2"), draw::format_mb(comparison.runs[1].peak_bytes));
    EXPECT_EQ(item("compare.Peak allocated.2.change"),
              draw::format_change(static_cast<double>(comparison.runs[1].peak_bytes),
                                  static_cast<double>(comparison.runs[0].peak_bytes)));
}

TEST_F(ComparePanelTest, KernelsAreJoinedByName) {
    open_root_and_linear();
    draw(*panel_);
    click("compare.tab.kernels");
    const auto ready = session_.ready();
    const auto parts = traces::analysis::compare_parts({ready[0].get(), ready[1].get()},
                                                       traces::analysis::CompareBy::kernel);
    for (const traces::analysis::ComparedPart& part : parts.parts) {
        EXPECT_EQ(cell("kernel", part.name, "run1_us"),
                  part.runs[0].present ? draw::format_decimal(part.runs[0].us, 1) : "-");
    }
}

TEST_F(ComparePanelTest, SaysWhatATildeMeansAndWhatItsTablesMeasure) {
    open_root_and_linear();
    EXPECT_THAT(draw(*panel_), HasSubstr("within the spread of the steps: no difference can be claimed"));
    click("compare.tab.modules");
    EXPECT_THAT(clipboard_, HasSubstr("Device time of what each module launches itself"));
    click("compare.tab.units");
    EXPECT_THAT(clipboard_, HasSubstr("Device time of each unit's gathers and reductions"));
}

TEST_F(ComparePanelTest, AnotherBaseTurnsTheDifferenceRound) {
    open_root_and_linear();
    draw(*panel_);
    const std::string root = item("compare.Peak allocated.1"), linear = item("compare.Peak allocated.2");
    click("compare.base");
    click("compare.base.2");
    EXPECT_EQ(item("compare.Peak allocated.1"), linear);
    EXPECT_EQ(item("compare.Peak allocated.2"), root);
}

TEST_F(ComparePanelTest, ARunThatIsNotWantedIsLeftOut) {
    open({.per_linear = false}, "root.sqlite");
    open({.per_linear = true}, "linear.sqlite");
    open({.per_linear = true, .layers = 6}, "deep.sqlite");
    draw(*panel_);
    EXPECT_TRUE(draw::items::find("compare.Peak allocated.3"));
    click("compare.run.2");
    EXPECT_FALSE(draw::items::find("compare.Peak allocated.3"));
    EXPECT_EQ(item("compare.run.2"), "hidden");
}

// Dear ImGui aborts if a table has more than 64 columns.
TEST_F(ComparePanelTest, ComparesTheFirstRunsIfThereAreMoreThanTheTableHasColumns) {
    constexpr std::size_t kOpen = kMostCompared + 4;
    for (std::size_t i = 0; i < kOpen; ++i) open({.steps = 1}, fmt::format("run{}.sqlite", i).c_str());
    EXPECT_THAT(draw(*panel_), HasSubstr("63 of 67 chosen runs are compared"));
    EXPECT_TRUE(draw::items::find("compare.Peak allocated.63"));
    EXPECT_FALSE(draw::items::find("compare.Peak allocated.64"));
    click("compare.tab.kernels");
    click("compare.run.1");
    EXPECT_THAT(clipboard_, HasSubstr("63 of 66"));
}

TEST_F(ComparePanelTest, ARunIsComparedInItsOwnLimitRange) {
    open({.per_linear = true, .steps = 4}, "linear.sqlite");
    open({.per_linear = true, .steps = 4}, "again.sqlite");
    const auto steps = session_.open[1].trace->steps;
    session_.open[1].limit = model::TimeRange{steps[1].start, steps[1].end};
    const std::string text = draw(*panel_);
    EXPECT_THAT(text, HasSubstr("is compared (time filter set)"));
    traces::analysis::Selection selection;
    selection.from_ns = steps[1].start;
    selection.to_ns = steps[1].end;
    const traces::analysis::Comparison all = traces::analysis::compare({session_.open[0].trace.get()});
    const traces::analysis::Comparison part =
        traces::analysis::compare({session_.open[1].trace.get()}, selection);
    EXPECT_EQ(item("compare.Average step time.1"), draw::format_duration(all.runs[0].average_step_us * 1e3));
    EXPECT_EQ(item("compare.Average step time.2"), draw::format_duration(part.runs[0].average_step_us * 1e3));
}

TEST_F(ComparePanelTest, TimesAreThoseOfAllStepsWithoutNormalising) {
    open({.per_linear = true, .steps = 4}, "linear.sqlite");
    open({.per_linear = false, .steps = 4}, "root.sqlite");
    draw(*panel_);
    click("compare.tab.kernels");
    const auto parts = traces::analysis::compare_parts(
        {session_.open[0].trace.get(), session_.open[1].trace.get()}, traces::analysis::CompareBy::kernel);
    const traces::analysis::ComparedPart& part = parts.parts.front();
    click("compare.per_step");
    EXPECT_EQ(cell("kernel", part.name, "run1_us"),
              draw::format_decimal(part.runs[0].us * parts.whole.runs[0].mean_steps, 1));
}

TEST_F(ComparePanelTest, ADoubleClickGoesToTheRunThatIsChosen) {
    open_root_and_linear();
    draw(*panel_);
    click("compare.tab.kernels");
    click("compare.kernel.row.0", true);
    click("compare.go.2");
    EXPECT_EQ(session_.wanted_panel, "timeline");
    EXPECT_EQ(session_.active, 1U);
    EXPECT_EQ(session_.selected.kind, model::EventKind::device);
}

TEST_F(ComparePanelTest, HowOneKernelSpreads) {
    open_root_and_linear();
    draw(*panel_);
    click("compare.tab.steps");
    EXPECT_TRUE(draw::items::find("compare.spread.wrap=root.mean_us"));
    click("compare.of_kernel");
    EXPECT_NE(item("compare.kernel_name"), "");
    EXPECT_TRUE(draw::items::find("compare.spread.wrap=root.count"));
}

TEST_F(ComparePanelTest, MemoryByUnit) {
    open_root_and_linear();
    draw(*panel_);
    click("compare.tab.memory");
    EXPECT_TRUE(draw::items::find("compare.memory.peak allocated.run2_mb"));
    click("compare.memory_by.unit");
    EXPECT_TRUE(draw::items::find("compare.memory.peak allocated.run2_mb"));
}

TEST_F(ComparePanelTest, TracesWithNothingInThemSayWhatIsMissingOnEveryPage) {
    session_.add_trace(std::make_shared<traces::store::Trace>(), "empty.sqlite");
    session_.add_trace(std::make_shared<traces::store::Trace>(), "nothing.sqlite");
    draw(*panel_);
    for (const char* page : {"modules", "kernels", "operators", "collectives", "units"}) {
        click(std::string("compare.tab.") + page);
        EXPECT_THAT(clipboard_, HasSubstr("None of these traces holds")) << page;
    }
    click("compare.tab.memory");
    EXPECT_THAT(clipboard_, HasSubstr("holds allocations"));
    click("compare.tab.steps");
    EXPECT_THAT(clipboard_, HasSubstr("no kept step"));
}

TEST_F(ComparePanelTest, EveryPageDrawsInAnySizeAndStaysCheap) {
    open({.per_linear = true, .steps = 60, .layers = 24}, "long.sqlite");
    open({.per_linear = false, .steps = 60, .layers = 24}, "root.sqlite");
    draw(*panel_);
    for (const char* page : {"steps", "modules", "kernels", "operators", "collectives", "units", "memory"}) {
        click(std::string("compare.tab.") + page);
        EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12'000) << page;
        EXPECT_LT(commands(), 100) << page;
        for (const float size : {1.0F, 60.0F, 300.0F, 1000.0F}) draw(*panel_, size, size);
        draw(*panel_);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
