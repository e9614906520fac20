// The fixture of tests that use the timeline with a mouse: the whole viewer rendered into memory, with a
// mouse and keys that the test moves. Positions of clicks are found by name (draw/items.h); effects of
// gestures are read from the session or from the page's text. No display is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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

namespace shardscope::viewer::timeline {

inline constexpr int kWidth = 1200, kHeight = 800;

class GesturesTest : public testing::Test {
  protected:
    GesturesTest() {
        ImGui::CreateContext();
        ImGuiIO& io = ImGui::GetIO();
        io.IniFilename = nullptr;
        io.ClipboardUserData = &clipboard_;
        io.SetClipboardTextFn = [](void* text, const char* value) {
            *static_cast<std::string*>(text) = value;
        };
        io.GetClipboardTextFn = [](void* text) { return static_cast<std::string*>(text)->c_str(); };
        canvas_ = std::make_unique<backend::HeadlessCanvas>(kWidth, kHeight);
        app::apply_style(1);
        app::load_fonts(1);
        draw::items::keep(true);
        program_.panels = panels::make_panels();
        program_.show("timeline");
        program_.session.add_trace(mlp_sample({.per_linear = true, .ranks = 2}, "no such file"), "run");
        shell_ = std::make_unique<app::Shell>(program_);
        settle();
    }
    ~GesturesTest() override {
        draw::items::keep(false);
        canvas_.reset();
        ImGui::DestroyContext();
    }

    void frame() {
        canvas_->begin_frame();
        ImGuiIO& io = ImGui::GetIO();
        io.MousePos = mouse_;
        io.MouseDown[0] = left_;
        io.MouseDown[1] = right_;
        io.MouseWheel = wheel_;
        io.KeyShift = shift_;
        io.KeyCtrl = ctrl_;
        wheel_ = 0;
        ImGui::NewFrame();
        shell_->draw({});
        ImGui::Render();
    }
    void settle() {
        app::settle(program_, [&] { frame(); });
    }
    void act(const char* id) {
        ASSERT_TRUE(run_action(id, program_)) << id;
        settle();
    }
    void move(ImVec2 to) {
        mouse_ = to;
        frame();
        frame();
    }
    void press(bool& button, ImVec2 at) {
        move(at);
        button = true;
        frame();
        button = false;
        frame();
        settle();
    }
    void click(ImVec2 at) { press(left_, at); }
    void press_twice(ImVec2 at) {
        move(at);
        for (const bool down : {true, false, true, false}) {
            left_ = down;
            frame();
        }
        settle();
    }
    void drag(bool& button, ImVec2 from, ImVec2 to) {
        move(from);
        button = true;
        frame();
        for (int i = 1; i <= 5; ++i) {
            const float share = static_cast<float>(i) / 5;
            mouse_ = {from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share};
            frame();
        }
        button = false;
        frame();
        settle();
    }

    static draw::items::Item item(const std::string& name) {
        const auto found = draw::items::find(name);
        EXPECT_TRUE(found) << "no item is called " << name;
        return found.value_or(draw::items::Item{});
    }
    static ImVec2 middle(const std::string& name) {
        const draw::items::Item found = item(name);
        return {(found.min.x + found.max.x) / 2, (found.min.y + found.max.y) / 2};
    }
    // The bar of the widest visible event that has a text.
    static std::string widest_event() {
        std::string widest;
        float most = 0;
        for (const std::string& name : draw::items::names()) {
            if (!name.starts_with("timeline.event.") || name.back() < '0' || name.back() > '9') continue;
            const draw::items::Item bar = item(name);
            if (bar.max.x - bar.min.x <= most) continue;
            most = bar.max.x - bar.min.x;
            widest = name;
        }
        EXPECT_NE(widest, "");
        return widest;
    }
    // Clicks a bar of the area's histogram; returns its number of events.
    std::string click_a_bin() {
        for (const std::string& name : draw::items::names()) {
            if (!name.starts_with("timeline.area.bin.")) continue;
            const draw::items::Item bar = item(name);
            click({(bar.min.x + bar.max.x) / 2, bar.max.y - 3});
            return bar.text;
        }
        ADD_FAILURE() << "the histogram has no bar";
        return "";
    }
    model::OpenTrace& entry() { return *program_.session.current(); }
    model::Session& session() { return program_.session; }
    // A place on the rows without an event: below the last row, or the row of a heading.
    ImVec2 on_ruler(float share) const {
        const draw::items::Item ruler = item("timeline.ruler");
        return {ruler.min.x + (ruler.max.x - ruler.min.x) * share, ruler.max.y - 6};
    }
    std::int64_t time_at(float x) {
        const draw::items::Item rows = item("timeline.rows");
        const double share = static_cast<double>((x - rows.min.x) / (rows.max.x - rows.min.x));
        return entry().visible.from +
               static_cast<std::int64_t>(share * static_cast<double>(entry().visible.length()));
    }
    double ns_per_pixel() {
        const draw::items::Item rows = item("timeline.rows");
        return static_cast<double>(entry().visible.length()) / static_cast<double>(rows.max.x - rows.min.x);
    }

    app::Program program_;
    std::unique_ptr<backend::HeadlessCanvas> canvas_;
    std::unique_ptr<app::Shell> shell_;
    std::string clipboard_;
    ImVec2 mouse_{-1e6F, -1e6F};
    bool left_ = false, right_ = false, shift_ = false, ctrl_ = false;
    float wheel_ = 0;
};

}  // namespace shardscope::viewer::timeline
