// The Module View drawn without a screen: its tree, its calls and the flame chart of one of them.
#include <algorithm>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/panel_fixture.h"
#include "viewer/draw/format.h"
#include "viewer/tables/table.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kLinear =
    "FullyShardedDataParallel_0/MLP_0/Sequential_0/FullyShardedDataParallel_1/Linear_0";

class ModulesPanelTest : public PanelsTest {
  protected:
    ModulesPanelTest() {
        draw::items::keep(true);
        panel_ = make_panel("modules");
    }

    void click(const std::string& name, bool twice = false) { PanelsTest::click(*panel_, name, twice); }

    std::unique_ptr<model::Panel> panel_;
};

TEST_F(ModulesPanelTest, ACellSaysWhatTheAnalysisSays) {
    open({.per_linear = true}, "linear.sqlite");
    draw(*panel_);
    const auto view = traces::analysis::module_view(*session_.trace());
    const traces::analysis::ModuleNode& root = view.ranks[0].modules[0];
    EXPECT_EQ(item("modules.FullyShardedDataParallel_0.calls"), fmt::format("{}", root.occurrences));
    EXPECT_EQ(item("modules.FullyShardedDataParallel_0.device_us"), draw::format_decimal(root.device_us, 0));
    EXPECT_EQ(item("modules." + kLinear + ".parameters"), "262,656");  // 512 x 512 + 512
}

TEST_F(ModulesPanelTest, AChosenModuleShowsItsCallsAndItsFlameChart) {
    open({.per_linear = true, .steps = 3}, "linear.sqlite");
    draw(*panel_);
    click("modules.row." + kLinear);
    EXPECT_EQ(item("modules.call"), "call 1 of 3") << "one forward call in each of three steps";
    EXPECT_EQ(item("modules.forward"), "3");
    EXPECT_EQ(item("modules.backward"), "3");
    EXPECT_EQ(item("modules.flame.0.0"), "Linear_0") << "the call itself is the first lane's only bar";
    EXPECT_THAT(item("modules.facts"), HasSubstr("device"));
    click("modules.next");
    EXPECT_EQ(item("modules.call"), "call 2 of 3");
    click("modules.previous");
    EXPECT_EQ(item("modules.call"), "call 1 of 3");
    click("modules.backward");
    EXPECT_EQ(item("modules.flame.0.0"), "LinearBackward");
    click("modules.median");
    EXPECT_THAT(item("modules.call"), HasSubstr("of 3"));
}

TEST_F(ModulesPanelTest, AClickSelectsAnEventAndADoubleClickShowsItInTheTimeline) {
    open({.per_linear = true}, "linear.sqlite");
    draw(*panel_);
    click("modules.row." + kLinear);
    click("modules.flame.0.0");
    EXPECT_EQ(session_.selected.kind, model::EventKind::range);
    EXPECT_EQ(session_.wanted_panel, "");
    click("modules.flame.0.0", true);
    EXPECT_EQ(session_.wanted_panel, "timeline");
}

TEST_F(ModulesPanelTest, AModuleThatAnotherPanelChoseIsShown) {
    open({.per_linear = true, .layers = 3}, "linear.sqlite");
    draw(*panel_);
    const auto& modules = session_.trace()->modules;
    const auto linear =
        std::find_if(modules.begin(), modules.end(), [](const auto& m) { return m.name == "Linear_2"; });
    ASSERT_NE(linear, modules.end());
    session_.selected_module = linear->id;
    draw(*panel_);
    EXPECT_EQ(item("modules.flame.0.0"), "Linear_2");
}

TEST_F(ModulesPanelTest, ALimitRangeLeavesTheCallsThatStartInIt) {
    open({.per_linear = true, .steps = 4}, "linear.sqlite");
    const auto steps = session_.trace()->steps;
    session_.current()->limit =
        model::TimeRange{steps[1].start, steps[2].end};  // the second and third of rank 0
    draw(*panel_);
    click("modules.row." + kLinear);
    EXPECT_EQ(item("modules.call"), "call 1 of 2");
}

TEST_F(ModulesPanelTest, ColumnsAreHiddenAndShownAgain) {
    open({.per_linear = true}, "linear.sqlite");
    draw(*panel_);
    EXPECT_TRUE(draw::items::find("modules.FullyShardedDataParallel_0.host_us"));
    click("modules.columns");
    click("modules.columns.host_us");
    EXPECT_FALSE(draw::items::find("modules.FullyShardedDataParallel_0.host_us"));
}

TEST_F(ModulesPanelTest, TheTreeIsOfferedForExportWithPaths) {
    open({.per_linear = true}, "linear.sqlite");
    draw(*panel_);
    const auto tables = tables::shown_tables();
    ASSERT_EQ(tables.size(), 1U);
    EXPECT_EQ(tables[0].name, "modules");
    const std::string csv = table_csv(*tables[0].model, tables[0].order.get());
    EXPECT_THAT(csv, StartsWith("module,calls,operators,host_us"));
    EXPECT_THAT(csv, HasSubstr(kLinear + ","));
}

TEST_F(ModulesPanelTest, ATraceWithoutModulesSaysWhereTheyComeFrom) {
    session_.add_trace(std::make_shared<traces::store::Trace>(), "empty.sqlite");
    EXPECT_THAT(draw(*panel_), HasSubstr("with_stack=True"));
}

TEST_F(ModulesPanelTest, ManyCallsStayCheap) {
    open({.per_linear = true, .steps = 400, .layers = 24}, "long.sqlite");
    draw(*panel_);
    EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 10'000);
    EXPECT_LT(commands(), 100);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
