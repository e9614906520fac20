// The whole viewer rendered into memory, with a mouse and keys that the test moves: painted pixels are
// counted and examined, and the effects of gestures are read from the session. No display is needed.
#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <imgui.h>

#include "tests/viewer/mlp_sample.h"
#include "tests/viewer/shell_fixture.h"
#include "viewer/app/actions.h"
#include "viewer/app/program.h"
#include "viewer/app/shell.h"
#include "viewer/app/style.h"
#include "viewer/backend/headless.h"
#include "viewer/draw/items.h"
#include "viewer/panels/panel_table.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {
namespace TEST_FILE {

constexpr int kWidth = 1200, kHeight = 700;

class TimelineTest : public testing::Test {
  protected:
    TimelineTest() {
        ImGui::CreateContext();
        ImGui::GetIO().IniFilename = nullptr;
        canvas_ = std::make_unique<backend::HeadlessCanvas>(kWidth, kHeight);
        apply_style(1);
        load_fonts(1);
        program_.panels = panels::make_panels();
        program_.show("timeline");
        program_.rail = RailWidth::narrow;  // the timeline has the same place for any window width
        program_.session.add_trace(mlp_sample({.per_linear = true, .ranks = 2}, "run"), "run");
        shell_ = std::make_unique<Shell>(program_);
        settle();
    }
    ~TimelineTest() override {
        canvas_.reset();
        ImGui::DestroyContext();
    }

    void frame() {
        canvas_->begin_frame();
        ImGuiIO& io = ImGui::GetIO();
        io.MousePos = mouse_;
        io.MouseDown[0] = pressed_;
        io.MouseWheel = wheel_;
        io.KeyShift = shift_;
        wheel_ = 0;
        ImGui::NewFrame();
        shell_->draw({});
        ImGui::Render();
    }
    void settle() {
        app::settle(program_, [&] { frame(); });
    }
    std::vector<std::uint8_t> picture() {
        frame();
        canvas_->end_frame();
        return canvas_->pixels();
    }
    void move(float x, float y) {
        mouse_ = {x, y};
        frame();
        frame();
    }
    void click(float x, float y) {
        move(x, y);
        pressed_ = true;
        frame();
        pressed_ = false;
        frame();
        frame();
    }
    void drag(float x0, float y0, float x1, float y1) {
        move(x0, y0);
        pressed_ = true;
        frame();
        for (int i = 1; i <= 4; ++i) {
            mouse_ = {x0 + (x1 - x0) * static_cast<float>(i) / 4, y0 + (y1 - y0) * static_cast<float>(i) / 4};
            frame();
        }
        pressed_ = false;
        frame();
    }

    // A pixel of exactly this colour that is surrounded by the same colour: the middle of a bar.
    ImVec2 find_color(const std::vector<std::uint8_t>& rgba, theme::Color color) const {
        const auto at = [&](int x, int y) {
            const auto* p = &rgba[(static_cast<std::size_t>(y) * kWidth + static_cast<std::size_t>(x)) * 4];
            return static_cast<theme::Color>(p[0] | p[1] << 8 | p[2] << 16) | 0xFF000000U;
        };
        for (int y = 110; y < kHeight - 40; ++y) {
            for (int x = 200; x < kWidth - 20; ++x) {
                bool all = true;
                for (int d = -4; d <= 4 && all; ++d) all = at(x + d, y) == color && at(x, y + d) == color;
                if (all) return {static_cast<float>(x), static_cast<float>(y)};
            }
        }
        ADD_FAILURE() << "no such colour in the picture";
        return {0, 0};
    }

    const model::OpenTrace& entry() { return *program_.session.current(); }

    Program program_;
    std::unique_ptr<backend::HeadlessCanvas> canvas_;
    std::unique_ptr<Shell> shell_;
    ImVec2 mouse_{-1e6F, -1e6F};
    bool pressed_ = false, shift_ = false;
    float wheel_ = 0;
};

TEST_F(TimelineTest, PaintsKernelsCommunicationAndModules) {
    const auto rgba = picture();
    find_color(rgba, theme::kind_color(traces::store::DeviceKind::kernel));
    find_color(rgba, theme::kind_color(traces::store::DeviceKind::communication));
    find_color(rgba, theme::range_color(traces::store::RangeKind::step));
}

TEST_F(TimelineTest, DrawsTheSameFrameTwice) {
    EXPECT_EQ(picture(), picture());
}

TEST_F(TimelineTest, StaysCheapToDraw) {
    frame();
    const ImDrawData* data = ImGui::GetDrawData();
    int commands = 0;
    for (int i = 0; i < data->CmdListsCount; ++i) commands += data->CmdLists[i]->CmdBuffer.Size;
    EXPECT_LE(commands, 100);
    EXPECT_LE(data->TotalVtxCount, 60'000);
}

TEST_F(TimelineTest, WheelZoomsAboutTheMouse) {
    const model::TimeRange before = entry().visible;
    move(700, 300);
    wheel_ = 1;
    frame();
    frame();
    const model::TimeRange after = entry().visible;
    EXPECT_NEAR(static_cast<double>(after.length()) / static_cast<double>(before.length()), 0.8, 0.01);
    EXPECT_GT(after.from, before.from);
    EXPECT_LT(after.to, before.to);
}

TEST_F(TimelineTest, DragMovesTimeWithTheMouse) {
    const model::TimeRange before = entry().visible;
    drag(700, 300, 500, 300);  // to the left: later times become visible
    EXPECT_EQ(entry().visible.length(), before.length());
    EXPECT_GT(entry().visible.from, before.from);
    EXPECT_FALSE(entry().limit);
}

TEST_F(TimelineTest, ClickSelectsTheEventUnderTheMouse) {
    const ImVec2 at = find_color(picture(), theme::kind_color(traces::store::DeviceKind::communication));
    click(at.x, at.y);
    const model::SelectedEvent selected = program_.session.selected;
    ASSERT_EQ(selected.kind, model::EventKind::device);
    const auto i = static_cast<std::size_t>(selected.index);
    EXPECT_EQ(program_.session.trace()->device.kind[i], traces::store::DeviceKind::communication);
    EXPECT_GE(program_.session.selected_module, 0);
}

TEST_F(TimelineTest, ShiftDragSetsTheLimitRange) {
    shift_ = true;
    drag(400, 300, 800, 300);
    shift_ = false;
    ASSERT_TRUE(entry().limit);
    const model::TimeRange limit = *entry().limit;
    EXPECT_GT(limit.from, entry().visible.from);
    EXPECT_LT(limit.to, entry().visible.to);
    // 400 of about 1010 pixels of time.
    EXPECT_NEAR(static_cast<double>(limit.length()) / static_cast<double>(entry().visible.length()), 0.39,
                0.03);
}

TEST_F(TimelineTest, ClickOnARanksHeadingFoldsIt) {
    const auto before = picture();
    draw::items::keep(true);
    frame();
    frame();
    const auto heading = draw::items::find("timeline.row.rank 0");
    ASSERT_TRUE(heading) << testing::PrintToString(draw::items::names());
    draw::items::keep(false);
    const float x = heading->min.x + 20, y = (heading->min.y + heading->max.y) / 2;
    click(x, y);
    const auto after = picture();
    EXPECT_NE(before, after);
    click(x, y);
    mouse_ = {-1e6F, -1e6F};
    frame();
    EXPECT_EQ(picture(), before);
}

TEST_F(TimelineTest, TheRailShowsThePanels) {
    draw::items::keep(true);
    program_.session.wanted_panel = "memory";
    settle();
    EXPECT_EQ(program_.shown().name(), "memory");
    settle();
    EXPECT_EQ(program_.shown().name(), "memory");  // the panel does not change
    const auto sign = draw::items::find("rail.timeline");
    ASSERT_TRUE(sign);
    click((sign->min.x + sign->max.x) / 2, (sign->min.y + sign->max.y) / 2);
    EXPECT_EQ(program_.shown().name(), "timeline");
    EXPECT_EQ(draw::items::find("rail.timeline")->text, "shown");
    draw::items::keep(false);
}

// --- panes

TEST_F(TimelineTest, PanesAreFocusedResizedChosenAndClosedWithTheMouse) {
    draw::items::keep(true);
    ASSERT_TRUE(program_.arrange("timeline /60 (memory | summary)"));
    settle();
    const auto middle = [](const char* name) {
        const auto item = draw::items::find(name);
        EXPECT_TRUE(item) << name;
        return item ? ImVec2{(item->min.x + item->max.x) / 2, (item->min.y + item->max.y) / 2} : ImVec2();
    };
    const auto click_on = [&](const char* name) {
        const ImVec2 at = middle(name);
        click(at.x, at.y);
    };
    EXPECT_EQ(draw::items::find("rail.memory")->text, "in sight");
    click_on("pane.3");
    EXPECT_EQ(program_.shown().name(), "summary");
    // The wheel is for the pane under the mouse, and moves no focus.
    const model::TimeRange before = entry().visible;
    const ImVec2 rows = middle("timeline.rows");
    move(rows.x, rows.y);
    wheel_ = 1;
    frame();
    frame();
    EXPECT_LT(entry().visible.length(), before.length());
    EXPECT_EQ(program_.shown().name(), "summary");

    const ImVec2 bar = middle("splitter.1");
    drag(bar.x, bar.y, bar.x, bar.y - 100);
    frame();
    EXPECT_NEAR(middle("splitter.1").y, bar.y - 100, 2);
    EXPECT_EQ(program_.shown().name(), "summary");

    click_on("pane.3.heading");
    frame();
    click_on("pane.3.memory");  // the two change places
    frame();
    EXPECT_TRUE(program_.panes.text().ends_with("(summary | memory)")) << program_.panes.text();
    click_on("pane.2.close");
    frame();
    frame();
    EXPECT_FALSE(program_.panes.pane_of("summary"));
    EXPECT_EQ(program_.panes.count(), 2U);
    draw::items::keep(false);
}

TEST_F(TimelineTest, MemoryAboveTheTimelineSharesItsAxis) {
    draw::items::keep(true);
    ASSERT_TRUE(run_action("time_panes", program_));
    EXPECT_EQ(program_.panes.text(), "memory /45 timeline");
    settle();
    const auto places = [] {
        return std::pair(*draw::items::find("memory.chart"), *draw::items::find("timeline.rows"));
    };
    const auto [chart, rows] = places();
    EXPECT_EQ(chart.min.x, rows.min.x);
    EXPECT_EQ(chart.max.x, rows.max.x);
    EXPECT_LT(chart.max.y, rows.min.y);
    // The wheel on one zooms both about the mouse; both show the same time.
    const model::TimeRange before = entry().visible;
    move(chart.min.x + (chart.max.x - chart.min.x) / 4, (chart.min.y + chart.max.y) / 2);
    wheel_ = 1;
    frame();
    frame();
    EXPECT_NEAR(static_cast<double>(entry().visible.length()) / static_cast<double>(before.length()), 0.8,
                0.01);
    // Side by side each has its own width.
    ASSERT_TRUE(program_.arrange("memory | timeline"));
    settle();
    EXPECT_NE(places().first.min.x, places().second.min.x);
    draw::items::keep(false);
}

// --- two runs

TEST_F(TimelineTest, AnotherRunLiesBelowWithEachStepAligned) {
    draw::items::keep(true);
    program_.session.add_trace(mlp_sample({.per_linear = false, .ranks = 2}, "other"), "other");
    program_.session.set_active(0);
    settle();
    EXPECT_EQ(draw::items::find("timeline.other")->text, "");
    for (model::OpenTrace& open : program_.session.open) open.rows.filter = "thread";  // the steps' rows
    ASSERT_TRUE(run_action("other_run", program_));
    settle();
    settle();
    EXPECT_EQ(draw::items::find("timeline.other")->text, "other");
    EXPECT_EQ(draw::items::find("timeline.other.heading")->text.substr(0, 45),
              "Each step begins where it does in run (above)");
    const traces::store::Trace& here = *program_.session.trace();
    ASSERT_GT(here.steps.size(), 2U);
    int compared = 0;
    for (const traces::store::Step& step : here.steps) {
        const std::string name = "ProfilerStep#" + std::to_string(step.number);
        const auto above = draw::items::find("timeline.event." + name);
        const auto below = draw::items::find("timeline.other.event." + name);
        if (!above || !below) continue;
        EXPECT_NEAR(above->min.x, below->min.x, 1.5F) << name;
        EXPECT_LT(above->max.y, below->min.y) << name;
        ++compared;
    }
    EXPECT_GT(compared, 1);

    // The wheel below moves the time of both; a double click on an event makes its run the active one.
    const model::TimeRange before = entry().visible;
    const auto rows = *draw::items::find("timeline.other.rows");
    move((rows.min.x + rows.max.x) / 2, rows.min.y + 30);
    wheel_ = 1;
    frame();
    frame();
    EXPECT_LT(entry().visible.length(), before.length());
    program_.session.fit();
    settle();
    settle();
    const auto bar = *draw::items::find("timeline.other.event.ProfilerStep#1");
    move((bar.min.x + bar.max.x) / 2, (bar.min.y + bar.max.y) / 2);
    for (int i = 0; i < 2; ++i) {
        pressed_ = true;
        frame();
        pressed_ = false;
        frame();
    }
    settle();
    EXPECT_EQ(entry().name, "other");
    EXPECT_EQ(program_.session.selected.kind, model::EventKind::range);
    EXPECT_EQ(draw::items::find("timeline.other")->text, "run");

    // The other run is closed.
    program_.session.close(0);
    settle();
    EXPECT_FALSE(draw::items::find("timeline.other"));
    EXPECT_FALSE(draw::items::find("timeline.other.rows"));
    draw::items::keep(false);
}

TEST_F(TimelineTest, FourPanesStayCheapToDraw) {
    ASSERT_TRUE(program_.arrange("(timeline | memory) / (units | summary)"));
    settle();
    frame();
    const ImDrawData* data = ImGui::GetDrawData();
    int commands = 0;
    for (int i = 0; i < data->CmdListsCount; ++i) commands += data->CmdLists[i]->CmdBuffer.Size;
    EXPECT_LE(commands, 250);
    EXPECT_LE(data->TotalVtxCount, 120'000);
}

TEST_F(TimelineTest, ShowsWhatIsWrongInsteadOfAPanel) {
    program_.session.close(0);
    frame();
    program_.session.open_file("/nonexistent/run.sqlite");
    settle();
    EXPECT_NE(program_.session.current()->error, "");
    program_.help = program_.choose_file = true;
    settle();
    picture();
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::app
