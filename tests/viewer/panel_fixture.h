// The fixture of panels' tests: panels are drawn without a screen. Dear ImGui builds its frames, nothing
// paints them. The text of a panel is read through ImGui's own text log, or from items (draw/items.h) by
// name; its cost is counted in vertices and draw commands.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <imgui.h>

#include "tests/viewer/mlp_sample.h"
#include "viewer/app/style.h"
#include "viewer/draw/items.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::viewer {

// A time in microseconds as panels write it, computed with integers and without the viewer's own formatting.
inline std::string us_text(std::int64_t ns) {
    const std::int64_t tenths = (ns + 50) / 100;
    std::string text = std::to_string(tenths / 10);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
    return text + "." + std::to_string(tenths % 10);
}

// One ImGui context, one session, one panel.
class PanelsTest : public testing::Test {
  protected:
    PanelsTest() {
        ImGui::CreateContext();
        ImGuiIO& io = ImGui::GetIO();
        io.IniFilename = nullptr;
        io.DeltaTime = 1.0F / 60;
        io.ClipboardUserData = &clipboard_;
        io.SetClipboardTextFn = [](void* text, const char* value) {
            *static_cast<std::string*>(text) = value;
        };
        io.GetClipboardTextFn = [](void* text) { return static_cast<std::string*>(text)->c_str(); };
        app::apply_style(1);
        app::load_fonts(1);
        unsigned char* pixels = nullptr;
        int width = 0, height = 0;
        io.Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
    }
    ~PanelsTest() override {
        draw::items::keep(false);
        ImGui::DestroyContext();
    }

    // The text of an item of the last frame; items::keep(true) must be called before draw().
    static std::string item(const std::string& name) {
        const auto found = draw::items::find(name);
        EXPECT_TRUE(found) << "no item is called " << name;
        return found ? found->text : std::string();
    }

    void open(const MlpSample& sample, const char* name) {
        session_.add_trace(mlp_sample(sample, name), name);
    }
    void open_root_and_linear() {
        open({.per_linear = false}, "root.sqlite");
        open({.per_linear = true}, "linear.sqlite");
    }

    // Draws frames until every analysis is done, and returns the text of the last one.
    std::string draw(model::Panel& panel, float width = 1600, float height = 820) {
        for (int settled = 0, frames = 0; settled < 3 && frames < 4000; ++frames) {
            frame(panel, width, height);
            EXPECT_EQ(session_.analyses.failure(), "");
            session_.poll();
            settled = session_.working() ? 0 : settled + 1;
            if (session_.working()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        draw::items::begin_frame();
        EXPECT_FALSE(session_.working());
        return clipboard_;
    }

    // The same, until the panel's own work is done, too.
    void settle(model::Panel& panel) {
        do {
            draw(panel);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } while (panel.busy());
        draw(panel);
    }

    void frame(model::Panel& panel, float width, float height) {
        ImGuiIO& io = ImGui::GetIO();
        io.DisplaySize = {width, height};
        ImGui::NewFrame();
        draw::items::begin_frame();
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize(io.DisplaySize);
        ImGui::Begin("window", nullptr, ImGuiWindowFlags_NoDecoration);
        ImGui::LogToClipboard();
        model::Frame description;
        description.width = ImGui::GetContentRegionAvail().x;
        description.height = ImGui::GetContentRegionAvail().y;
        description.headless = true;
        panel.draw(session_, description);
        ImGui::LogFinish();
        ImGui::End();
        ImGui::Render();
    }

    // Sets the state of a key from the next frame on.
    static void hold_key(int key, bool down, bool control = false) {
        ImGuiIO& io = ImGui::GetIO();
#if IMGUI_VERSION_NUM < 18700
        io.KeyMap[key] = key + 1;
        io.KeysDown[key + 1] = down;
        io.KeyCtrl = down && control;
#else
        io.AddKeyEvent(ImGuiMod_Ctrl, down && control);
        io.AddKeyEvent(static_cast<ImGuiKey>(key), down);
#endif
    }

    // Presses and releases the left button at a place, then draws until every analysis is done; returns the
    // text of the last frame.
    std::string click_at(model::Panel& panel, ImVec2 at, bool twice = false) {
        ImGuiIO& io = ImGui::GetIO();
        io.MousePos = at;
        frame(panel, 1600, 820);
        for (int i = 0; i < (twice ? 2 : 1); ++i) {
            for (const bool down : {true, false}) {
                io.MouseDown[0] = down;
                frame(panel, 1600, 820);
            }
        }
        io.MousePos = {-1e9F, -1e9F};
        frame(panel, 1600, 820);
        return draw(panel);
    }
    // Clicks on an item, at `share` of its width from its left: near the left on table rows, because a click
    // between two columns would resize them.
    static constexpr float kNearLeft = 0.02F;
    std::string click(model::Panel& panel, const std::string& name, bool twice = false, float share = 0.5F) {
        const auto found = draw::items::find(name);
        EXPECT_TRUE(found) << "no item is called " << name;
        if (!found) return "";
        return click_at(
            panel, {found->min.x + (found->max.x - found->min.x) * share, (found->min.y + found->max.y) / 2},
            twice);
    }

    static int commands() {
        int count = 0;
        const ImDrawData* data = ImGui::GetDrawData();
        for (int i = 0; i < data->CmdListsCount; ++i) count += data->CmdLists[i]->CmdBuffer.Size;
        return count;
    }

    std::string clipboard_;
    model::Session session_;
};

}  // namespace shardscope::viewer
