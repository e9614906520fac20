// The panels drawn without a screen: Dear ImGui builds its frames, nothing paints them. The text of a panel
// is read through ImGui's own text log; its cost is counted in vertices and draw commands.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include "tests/viewer/mlp_sample.h"
#include "tests/viewer/panel_fixture.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/app/style.h"
#include "viewer/model/keys.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(PanelsTest, ModulesShowTheTreeOfThePerLinearWrap) {
    open({.per_linear = true, .layers = 4}, "linear.sqlite");
    const std::string text = draw(*make_panel("modules"));
    for (const char* name :
         {"FullyShardedDataParallel_0", "MLP_0", "Sequential_0", "FullyShardedDataParallel_1", "Linear_0",
          "ReLU_2", "FullyShardedDataParallel_4", "Linear_3"}) {
        EXPECT_THAT(text, HasSubstr(name));
    }
    EXPECT_THAT(text, HasSubstr("262,656")) << "parameters of one Linear: 512 x 512 + 512";
    EXPECT_THAT(text, Not(HasSubstr("FullyShardedDataParallel_5")));
}

TEST_F(PanelsTest, ModulesOfTheRootWrapHaveOneUnit) {
    open({.per_linear = false}, "root.sqlite");
    const std::string text = draw(*make_panel("modules"));
    EXPECT_THAT(text, AllOf(HasSubstr("FullyShardedDataParallel_0"), HasSubstr("Linear_3")));
    EXPECT_THAT(text, Not(HasSubstr("FullyShardedDataParallel_1")));
}

TEST_F(PanelsTest, ModulesOpenOnlyTheLevelsThatFit) {
    open({.per_linear = true, .layers = 40}, "linear.sqlite");
    const std::string text = draw(*make_panel("modules"), 1000, 400);
    EXPECT_THAT(text, HasSubstr("Sequential_0"));
    EXPECT_THAT(text, Not(HasSubstr("Linear_0"))) << "82 rows below would not fit into 400 pixels";
}

TEST_F(PanelsTest, LongNamesOfRunsKeepBothEnds) {
    draw::items::keep(true);
    const std::string name = "worker0_step_12.1694128201549876543210.pt.trace.json.gz";
    open({}, name.c_str());
    open({}, "other.sqlite");
    draw(*make_panel("summary"));
    EXPECT_THAT(item("app.trace"),
                AllOf(testing::StartsWith("worker0"), HasSubstr("..."), testing::EndsWith(".gz")));
}

TEST_F(PanelsTest, SummaryListsTheEightCategoriesAndTheMean) {
    open({}, "root.sqlite");
    const std::string text = draw(*make_panel("summary"));
    for (const char* name : {"Average Step Time", "Kernel", "Memcpy", "Memset", "Communication", "Runtime",
                             "DataLoader", "CPU Exec", "Other"}) {
        EXPECT_THAT(text, HasSubstr(name));
    }
    EXPECT_THAT(text, HasSubstr("Rank 0: mean of 3 steps"));
    EXPECT_THAT(text, HasSubstr("100.00"));
}

TEST_F(PanelsTest, SummaryFollowsTheChosenRank) {
    open({.ranks = 3}, "root.sqlite");
    session_.rank = traces::store::RankIndex(2);
    EXPECT_THAT(draw(*make_panel("summary")), HasSubstr("Rank 2: mean of 3 steps"));
}

TEST_F(PanelsTest, MemoryNamesThePeakAndWhatLivedThen) {
    const MlpSample sample{.per_linear = false};
    open(sample, "root.sqlite");
    // Root wrap: gathered parameters, weight gradients and the flat gradient are all whole at the peak,
    // together with the shards of parameters, momentum and gradients; of the activations only the input is
    // left.
    const std::int64_t whole = sample.layers * sample.layer_bytes();
    const std::int64_t peak = 3 * whole + 3 * whole / sample.ranks + sample.activation_bytes();
    EXPECT_EQ(peak, 19042304);  // 3 * 4,202,496 + 3 * 2,101,248 + 131,072
    const std::string text = draw(*make_panel("memory"));
    EXPECT_THAT(text, HasSubstr("19,042,304 bytes"));
    EXPECT_THAT(text, HasSubstr("18.16 MiB"));
    EXPECT_THAT(text, HasSubstr("unsharded gradients"));
    EXPECT_THAT(text, HasSubstr("No prediction is stored."));
}

TEST_F(PanelsTest, MemoryShowsThePredictionAndTheDifferenceForEveryPart) {
    const MlpSample sample{.per_linear = false};
    constexpr std::int64_t kPeak = 19042304;  // as above
    traces::store::ColumnSink sink;
    sink.set_path("root.sqlite");
    write_mlp_sample(sample, sink);
    traces::schema::PredictionRow prediction{.rank = 0, .peak_bytes = kPeak - 4096, .where = "backward"};
    prediction.at_peak[static_cast<int>(traces::schema::MemoryCategory::activations)] = kPeak - 4096;
    sink.add(prediction);
    const auto part = [&](std::int64_t unit, std::int64_t bytes) {
        sink.add(traces::schema::PredictionPartRow{
            .rank = 0, .kind = traces::schema::PredictionPart::unit, .id = unit, .bytes = bytes, .name = {}});
    };
    part(0, kPeak - 1234567);
    part(-1, 1234567 - 4096);
    session_.add_trace(sink.take(), "root.sqlite");
    const std::string text = draw(*make_panel("memory"));
    EXPECT_THAT(text, HasSubstr("off by 4,096 bytes (backward)"));
    EXPECT_THAT(text, HasSubstr("+4,096"));  // at the peak
    // Nothing was predicted for the shards: all of their 2,101,248 bytes are in excess.
    EXPECT_THAT(text, HasSubstr("+2,101,248"));
}

TEST_F(PanelsTest, CompareTitlesCardsByWhatDiffersAndJudgesThePeak) {
    open_root_and_linear();
    const std::string text = draw(*make_panel("compare"));
    EXPECT_THAT(text, AllOf(HasSubstr("wrap=root"), HasSubstr("wrap=module:Linear")));
    EXPECT_THAT(text, HasSubstr("18.16 MiB"));
    EXPECT_THAT(text, HasSubstr("Settings that differ"));
    EXPECT_THAT(text, HasSubstr("fsdp.wrap"));
}

TEST_F(PanelsTest, CompareOfOneRunSaysWhatIsMissing) {
    open({}, "root.sqlite");
    EXPECT_THAT(draw(*make_panel("compare")), HasSubstr("Open another"));
}

TEST_F(PanelsTest, RunsListEveryFileWithItsConfiguration) {
    open_root_and_linear();
    const std::string text = draw(*make_panel("runs"));
    EXPECT_THAT(text, AllOf(HasSubstr("root.sqlite"), HasSubstr("linear.sqlite")));
    EXPECT_THAT(text,
                AllOf(HasSubstr("Sample processor"), HasSubstr("fsdp.wrap"), HasSubstr("module:Linear")));
    EXPECT_THAT(text, HasSubstr("finished"));
}

TEST_F(PanelsTest, RunsWithoutAnyFileSayHowToOpenOne) {
    EXPECT_THAT(draw(*make_panel("runs")), HasSubstr("No trace is open"));
}

TEST_F(PanelsTest, AFileThatCannotBeReadIsNamedWithItsReason) {
    session_.open_file("/nowhere/to/be/found.sqlite");
    const std::string text = draw(*make_panel("runs"));
    EXPECT_THAT(text, HasSubstr("found.sqlite"));
    EXPECT_THAT(text, HasSubstr(session_.open.at(0).error));
    EXPECT_NE(session_.open.at(0).error, "");
}

TEST_F(PanelsTest, AnEmptyTraceIsNotAFault) {
    session_.add_trace(std::make_shared<traces::store::Trace>(), "empty.sqlite");
    for (const auto& panel : make_panels()) {
        draw(*panel);
    }
    EXPECT_THAT(draw(*make_panel("modules")), HasSubstr("names no modules"));
    EXPECT_THAT(draw(*make_panel("memory")), HasSubstr("no allocations"));
}

// A software renderer keeps its frame rate below 10,000 rectangles and 100 commands.
TEST_F(PanelsTest, FramesStayCheapAlsoForLongRuns) {
    open({.per_linear = true, .steps = 60, .layers = 24}, "long.sqlite");
    open({.per_linear = false, .steps = 60, .layers = 24}, "root.sqlite");
    for (const auto& panel : {make_panel("runs"), make_panel("modules"), make_panel("summary"),
                              make_panel("memory"), make_panel("compare")}) {
        draw(*panel);
        EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12000) << panel->name();
        EXPECT_LT(commands(), 100) << panel->name();
    }
}

TEST_F(PanelsTest, EveryPanelDrawsInAnySize) {
    open_root_and_linear();
    for (const auto& panel : make_panels()) {
        for (const float size : {1.0F, 40.0F, 200.0F, 1000.0F}) draw(*panel, size, size);
    }
}

// Menus, keys and the sidebar take names and titles from the list, pages from the panels.
TEST(PanelList, NamesThePanelsInTheirOrder) {
    const auto panels = make_panels();
    ASSERT_EQ(panels.size(), panel_table().size());
    for (std::size_t i = 0; i < panels.size(); ++i) {
        EXPECT_EQ(panels[i]->name(), panel_table()[i].name);
        EXPECT_NE(panel_title(panels[i]->name()), panels[i]->name()) << "a title for people";
        EXPECT_NE(panel_group(panels[i]->name()), "");
    }
    EXPECT_EQ(panel_title("idle"), "Idle & Path");
}

// Users know the keys by heart: a new panel takes a free key, wherever it is in the list.
TEST(PanelList, PanelsKeepTheirKeys) {
    const std::vector<std::pair<const char*, const char*>> keys = {
        {"runs", "1"},           {"timeline", "2"},      {"modules", "3"},        {"units", "4"},
        {"memory", "5"},         {"summary", "6"},       {"operators", "7"},      {"kernels", "8"},
        {"collectives", "9"},    {"distributed", "0"},   {"shardmap", "Shift+1"}, {"idle", "Shift+2"},
        {"advice", "Shift+3"},   {"compare", "Shift+4"}, {"query", "Shift+5"},    {"plan", "Shift+6"},
        {"schedule", "Shift+8"}, {"start", "Shift+9"},   {"training", "Shift+0"}, {"job", "J"},
        {"topology", "U"}};
    for (const auto& [panel, key] : keys) {
        ASSERT_NE(find_panel(panel), nullptr) << panel;
        EXPECT_EQ(chord_text(find_panel(panel)->key), key) << panel;
    }
}

// A mouse that moves over everything and clicks: no panel may crash.
TEST_F(PanelsTest, HoveringAndClickingEverywhereIsSafe) {
    open_root_and_linear();
    for (const auto& panel : make_panels()) {
        draw(*panel);
        for (float y = 5; y < 800; y += 37) {
            for (float x = 5; x < 1600; x += 61) {
                ImGui::GetIO().MousePos = {x, y};
                ImGui::GetIO().MouseDown[0] = static_cast<int>(x) % 2 == 0;
                frame(*panel, 1600, 820);
            }
        }
        ImGui::GetIO().MouseDown[0] = false;
        ImGui::GetIO().MousePos = {-1e9F, -1e9F};
        EXPECT_NE(draw(*panel), "") << panel->name() << " shows nothing any more";
    }
    EXPECT_LT(session_.active, session_.open.size());
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
