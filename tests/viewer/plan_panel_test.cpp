// The Plan panel, drawn without a screen: the chart and the table stay consistent, and a point opens its
// trace.
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/panel_fixture.h"
#include "tests/viewer/plan_sample.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PlanPanelTest : public PanelsTest {
  protected:
    PlanPanelTest() {
        draw::items::keep(true);
        ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as in the OpenGL backend
    }
    void open_plan() { session_.add_trace(plan_sample(), "plan.sqlite"); }
    void key(model::Panel& panel, int key) {
        for (const bool down : {true, false}) {
            hold_key(key, down);
            frame(panel, 1600, 820);
        }
        draw(panel);
    }
    const std::unique_ptr<model::Panel> panel_ = make_panel("plan");
};

TEST_F(PlanPanelTest, ShowsThePictureTheTableAndTheBestRow) {
    open_plan();
    const std::string text = draw(*panel_);
    EXPECT_THAT(text, AllOf(HasSubstr("8 configurations of tiny.toml"), HasSubstr("on the Pareto front (3)"),
                            HasSubstr("does not fit (1)"), HasSubstr("impossible (1)")));
    EXPECT_EQ(item("plan.chart"), "5 points") << "four that were simulated, one that was not";
    EXPECT_EQ(item("plan.rows.rows"), "7");
    EXPECT_EQ(item("plan.title"), "Row 3, on the Pareto front");
    EXPECT_EQ(item("plan.chosen"), "3");
    EXPECT_EQ(item("plan.why"), "why of 3");
    EXPECT_EQ(item("plan.value.Peak, allocated"), "800.00 MiB");
    EXPECT_EQ(item("plan.peak.activations"), "600.00 MiB");
}

TEST_F(PlanPanelTest, AClickOnAPointChoosesItsRow) {
    open_plan();
    draw(*panel_);
    click(*panel_, "plan.point.5");
    EXPECT_EQ(item("plan.title"), "Row 5, on the Pareto front");
    EXPECT_EQ(item("plan.chosen"), "5");
    // The table's keyboard continues from the clicked row: 5 is third, the row below it is 2.
    click(*panel_, "plan.rows.5", false, kNearLeft);
    key(*panel_, ImGuiKey_DownArrow);
    EXPECT_EQ(item("plan.chosen"), "2");
}

TEST_F(PlanPanelTest, AClickOnARowMovesThePicture) {
    open_plan();
    draw(*panel_);
    click(*panel_, "plan.rows.1", false, kNearLeft);
    EXPECT_EQ(item("plan.chosen"), "1");
    EXPECT_EQ(item("plan.title"), "Row 1, on the Pareto front");
    click(*panel_, "plan.rows.7", false, kNearLeft);
    EXPECT_EQ(item("plan.title"), "Row 7, impossible");
    EXPECT_FALSE(draw::items::find("plan.chosen")) << "it has no place in the picture";
    EXPECT_EQ(item("plan.why"), "fsdp.shard_group: 3 does not divide 2 ranks");
    EXPECT_EQ(item("plan.open"), "off") << "there is no job to simulate";
}

TEST_F(PlanPanelTest, ArrowsGoAlongTheFront) {
    open_plan();
    draw(*panel_);
    for (const char* expected : {"1", "5", "5"}) {
        panel_->act("plan_slower", session_);
        draw(*panel_);
        EXPECT_EQ(item("plan.chosen"), expected);
    }
    panel_->act("plan_faster", session_);
    draw(*panel_);
    EXPECT_EQ(item("plan.chosen"), "1");
}

TEST_F(PlanPanelTest, ViewsLeaveRowsOut) {
    open_plan();
    draw(*panel_);
    click(*panel_, "plan.show.what_fits");
    EXPECT_EQ(item("plan.rows.rows"), "4");
    EXPECT_EQ(item("plan.chart"), "4 points");
    click(*panel_, "plan.show.pareto_front");
    EXPECT_EQ(item("plan.rows.rows"), "3");
    click(*panel_, "plan.show.all");
    click(*panel_, "plan.repeated");
    EXPECT_EQ(item("plan.rows.rows"), "8");
    click(*panel_, "plan.memory.reserved");
    EXPECT_EQ(item("plan.chart"), "5 points") << "of the one that was not simulated it is unknown";
    click(*panel_, "plan.time.per_sample");
    EXPECT_EQ(item("plan.chart"), "5 points");
}

TEST_F(PlanPanelTest, JobFilesAreCopiedAndSaved) {
    open_plan();
    draw(*panel_);
    std::string copied;
    ImGui::GetIO().ClipboardUserData = &copied;
    panel_->act("plan_copy_job", session_);
    EXPECT_EQ(copied, "# row 3\n[run]\nranks = 2\n");
    ImGui::GetIO().ClipboardUserData = &clipboard_;
    click(*panel_, "plan.save_job");
    ASSERT_TRUE(session_.wanted_save);
    EXPECT_EQ(session_.wanted_save->name, "row-3.toml");
    EXPECT_EQ(session_.wanted_save->text, "# row 3\n[run]\nranks = 2\n");
}

TEST_F(PlanPanelTest, FindsThePlanNextToARun) {
    open_plan();
    open({}, "root.sqlite");
    session_.set_active(1);
    draw(*panel_);
    EXPECT_EQ(item("plan.title"), "Row 3, on the Pareto front");
    EXPECT_EQ(session_.ready().size(), 1U) << "a plan is no run to compare";
    EXPECT_TRUE(model::holds_only_plan(*session_.open[0].trace));
    EXPECT_FALSE(model::holds_plan(*session_.open[1].trace));
}

TEST_F(PlanPanelTest, ExplainsHowToMakeAPlanIfThereIsNone) {
    EXPECT_THAT(draw(*panel_), HasSubstr("shardscope-train plan JOB.toml -o plan.sqlite"));
    open({}, "root.sqlite");
    EXPECT_THAT(draw(*panel_), HasSubstr("shardscope-train plan JOB.toml -o plan.sqlite"));
}

TEST_F(PlanPanelTest, AnEmptyPlanIsNotAFault) {
    traces::store::ColumnSink sink;
    sink.add(traces::schema::RunInfoRow{"plan.job", "tiny.toml"});
    session_.add_trace(sink.take(), "plan.sqlite");
    EXPECT_THAT(draw(*panel_), AllOf(HasSubstr("0 configurations"), HasSubstr("tried no configuration")));
}

TEST_F(PlanPanelTest, NamesTheSmallestRowIfNothingFits) {
    traces::store::ColumnSink sink;
    for (int i = 1; i <= 3; ++i) {
        traces::schema::PlanRow row = plan_row(i, 10, 2000 * i);
        row.outcome = "too_large";
        sink.add(row);
    }
    session_.add_trace(sink.take(), "plan.sqlite");
    EXPECT_THAT(draw(*panel_),
                HasSubstr("Nothing fits into 1,000.0 MiB of memory: the smallest peak is 2,000.00 MiB"));
}

// Thousands of rows, some of them at the same place, and values that are not numbers.
TEST_F(PlanPanelTest, LargeAndOddPlansStayCheap) {
    traces::store::ColumnSink sink;
    for (int i = 1; i <= 8'000; ++i) {
        traces::schema::PlanRow row = plan_row(i, 1 + i % 997, 10 + i % 1201, i % 2000 == 0);
        if (i % 3 == 0) row.outcome = "too_large";
        if (i % 7 == 0) row.reserved_bytes = -1;
        if (i % 11 == 0) row.step_us = std::numeric_limits<double>::quiet_NaN();
        if (i % 13 == 0) row.peak_bytes = std::numeric_limits<std::int64_t>::max();
        if (i % 17 == 0) row.why = std::string(10'000, 'x');
        sink.add(row);
    }
    session_.add_trace(sink.take(), "plan.sqlite");
    draw(*panel_);
    // The log through which this fixture reads makes the table draw all rows, so only the chart is counted
    // here.
    int picture = 0;
    for (int i = 0; i < ImGui::GetDrawData()->CmdListsCount; ++i) {
        const ImDrawList& list = *ImGui::GetDrawData()->CmdLists[i];
        if (std::string_view(list._OwnerName).find("picture") != std::string_view::npos)
            picture = list.VtxBuffer.Size;
    }
    EXPECT_GT(picture, 1000);
    EXPECT_LT(picture, 4 * 7000);
    EXPECT_LT(commands(), 100);
    for (const float size : {1.0F, 300.0F}) draw(*panel_, size, size);
}

// The mouse moves over the whole panel in small steps, because a list of its parts could become incomplete.
TEST_F(PlanPanelTest, HoveringAndClickingEverywhereIsSafe) {
    open_plan();
    for (const float width : {1600.0F, 700.0F}) {
        draw(*panel_, width, 820);
        for (float y = 5; y < 800; y += 41) {
            for (float x = 5; x < width; x += 67) {
                // It does not click on a button that would start another program.
                const auto button = draw::items::find("plan.open");
                if (button && x >= button->min.x && x < button->max.x && y >= button->min.y &&
                    y < button->max.y)
                    continue;
                ImGui::GetIO().MousePos = {x, y};
                for (const bool down : {true, false}) {
                    ImGui::GetIO().MouseDown[0] = down;
                    frame(*panel_, width, 820);
                    for (int i = 0; i < 25; ++i)
                        frame(*panel_, width, 820);  // so that no click counts as half of a double click
                }
            }
        }
        ImGui::GetIO().MousePos = {-1e9F, -1e9F};
    }
    EXPECT_FALSE(session_.simulation.busy());
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
