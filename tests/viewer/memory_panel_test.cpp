// The Memory panel, drawn without a screen: the analyses' numbers, spaces, ranks, the cursor, another run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "tests/viewer/panel_fixture.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using traces::schema::MemoryCategory;
using traces::schema::MemorySpace;

class MemoryPanelTest : public PanelsTest {
  protected:
    MemoryPanelTest() { draw::items::keep(true); }
};

// Two steps; a buffer of 1 MB is allocated in the first, one of 3 MB in the second.
model::TracePtr small_run() {
    traces::RunBuilder run(2);
    for (int r = 0; r < 2; ++r) {
        run.allocate(r, 10, 1, 1 << 20, {.category = MemoryCategory::parameters, .name = "weight"});
        run.allocate(r, 20, 9, 2 << 20, {.space = MemorySpace::pinned, .name = "staging"});
        run.step(r, 0, 1'000, 5'000);
        run.allocate(r, 2'000, 2, 1 << 20, {.category = MemoryCategory::activations, .name = "first"});
        run.free(r, 3'000, 2, 1 << 20, {.category = MemoryCategory::activations});
        run.step(r, 1, 5'000, 9'000);
        run.allocate(r, 6'000, 3, (3 + r) << 20, {.category = MemoryCategory::activations, .name = "second"});
        run.free(r, 8'000, 3, (3 + r) << 20, {.category = MemoryCategory::activations});
    }
    return run.take();
}

TEST_F(MemoryPanelTest, ShowsThePeakThatTheAnalysisFinds) {
    session_.add_trace(small_run(), "run.sqlite");
    const auto panel = make_panel("memory");
    draw(*panel);
    EXPECT_EQ(item("memory.value.peak_bytes"), std::to_string(4 << 20));  // 1 MB and 3 MB
    EXPECT_EQ(item("memory.value.at_peak.activations"), std::to_string(3 << 20));
    EXPECT_EQ(item("memory.value.peak_time_ns"), "6000");
    EXPECT_EQ(item("memory.categories.all.mb"), "4.00");
    EXPECT_EQ(item("memory.categories.parameters.share_percent"), "25.00");
    session_.rank = traces::store::RankIndex(1);
    draw(*panel);
    EXPECT_EQ(item("memory.value.peak_bytes"), std::to_string(5 << 20));
}

TEST_F(MemoryPanelTest, ObeysTheLimitRange) {
    session_.add_trace(small_run(), "run.sqlite");
    session_.open[0].limit = model::TimeRange{1'000, 5'000};
    draw(*make_panel("memory"));
    EXPECT_EQ(item("memory.value.peak_bytes"), std::to_string(2 << 20)) << "the second step is left out";
}

TEST_F(MemoryPanelTest, AClickOnTheCurveMovesTheCursorAndListsLiveAllocations) {
    session_.add_trace(small_run(), "run.sqlite");
    session_.open[0].visible = {0, 10'000};
    const auto panel = make_panel("memory");
    draw(*panel);
    click(*panel, "memory.chart", false, 0.4F);  // at about 4,000 ns only the parameters are allocated
    ASSERT_TRUE(session_.open[0].cursor);
    EXPECT_NEAR(static_cast<double>(*session_.open[0].cursor), 4'000, 200);
    EXPECT_EQ(item("memory.value.live_bytes"), std::to_string(1 << 20));
    session_.open[0].cursor = 7'000;  // as moved by the mouse on the timeline
    draw(*panel);
    EXPECT_EQ(item("memory.value.live_bytes"), std::to_string(4 << 20));
}

TEST_F(MemoryPanelTest, TheWheelZoomsTheTimelinesOwnRange) {
    session_.add_trace(small_run(), "run.sqlite");
    session_.open[0].visible = {0, 10'000};
    const auto panel = make_panel("memory");
    draw(*panel);
    const auto chart = draw::items::find("memory.chart");
    ASSERT_TRUE(chart);
    ImGui::GetIO().MousePos = {(chart->min.x + chart->max.x) / 2, (chart->min.y + chart->max.y) / 2};
    frame(*panel, 1600, 820);
    ImGui::GetIO().MouseWheel = 2;
    frame(*panel, 1600, 820);
    EXPECT_LT(session_.open[0].visible.length(), 8'000);
    EXPECT_LT(session_.open[0].visible.from, 5'000);
    EXPECT_GT(session_.open[0].visible.to, 5'000);
}

TEST_F(MemoryPanelTest, PinnedMemoryHasItsOwnCurveAndPeak) {
    session_.add_trace(small_run(), "run.sqlite");
    const auto panel = make_panel("memory");
    draw(*panel);
    const std::string text = click(*panel, "memory.space.pinned");
    EXPECT_THAT(text, HasSubstr("peak allocated pinned memory of rank 0"));
    EXPECT_EQ(item("memory.value.peak_bytes"), std::to_string(2 << 20));
}

TEST_F(MemoryPanelTest, ListsEveryAllocationAndGoesToIt) {
    session_.add_trace(small_run(), "run.sqlite");
    const auto panel = make_panel("memory");
    draw(*panel);
    click(*panel, "memory.view.allocations");
    EXPECT_EQ(item("memory.allocations.rows"), "4") << "of rank 0, pinned too";
    click(*panel, "memory.allocations.row.2", false, kNearLeft);
    EXPECT_EQ(session_.open[0].cursor, 2'000);
}

TEST_F(MemoryPanelTest, StepsRanksAndPoolHaveTheirTables) {
    session_.add_trace(small_run(), "run.sqlite");
    const auto panel = make_panel("memory");
    draw(*panel);
    click(*panel, "memory.view.steps");
    EXPECT_EQ(item("memory.steps.0.peak_mb"), "2.00");
    EXPECT_EQ(item("memory.steps.1.peak_mb"), "4.00");
    click(*panel, "memory.view.ranks");
    EXPECT_EQ(item("memory.ranks.1.peak_mb"), "5.00");
    EXPECT_THAT(click(*panel, "memory.view.pool"),
                HasSubstr("does not record the memory of the allocator's pool"));
    EXPECT_THAT(click(*panel, "memory.all_ranks"), HasSubstr("All ranks over time"));
}

TEST_F(MemoryPanelTest, AgainstAnotherRunTheDifferencesAreAtThePeaks) {
    open_root_and_linear();
    const auto panel = make_panel("memory");
    EXPECT_THAT(draw(*panel), HasSubstr("against no other run"));
    click(*panel, "memory.other");
    click(*panel, "memory.other.linear.sqlite");
    const std::string text = click(*panel, "memory.view.other_run");
    EXPECT_THAT(text, HasSubstr("At the peaks of rank 0: 18.16 MiB here"));
    EXPECT_THAT(item("memory.other_categories.unsharded gradients.difference_mb"), HasSubstr("-"))
        << "wrapped per Linear fewer are whole at once";
}

TEST_F(MemoryPanelTest, WithoutAllocationsItSaysHowToRecordThem) {
    traces::RunBuilder run;
    run.kernel(0, 10, 20, 5);
    session_.add_trace(run.take(), "run.sqlite");
    EXPECT_THAT(draw(*make_panel("memory")), AllOf(HasSubstr("no allocations"), HasSubstr("profile_memory")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
