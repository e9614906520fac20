// The fixture of tests that run the whole program without a screen: its window, with every panel, as text and
// as items.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <imgui.h>

#include "tests/viewer/panel_fixture.h"
#include "viewer/app/program.h"
#include "viewer/app/shell.h"
#include "viewer/draw/items.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::viewer::app {

// Draws frames until nothing is left to do, and one more, since items are those of the previous frame.
template <class DrawFrame>
void settle(const Program& program, const DrawFrame& frame) {
    for (int calm = 0, i = 0; calm < 3 && i < 5000; ++i) {
        frame();
        calm = program.working() ? 0 : calm + 1;
        if (calm == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_FALSE(program.working());
    frame();
}

class ShellTest : public PanelsTest {
  protected:
    ShellTest() {
        draw::items::keep(true);
        program_.panels = panels::make_panels();
        program_.rail = RailWidth::narrow;
    }

    // Returns the window's text.
    std::string frame() {
        ImGui::GetIO().DisplaySize = {1600, 900};
        ImGui::NewFrame();
        ImGui::LogToClipboard();
        shell_.draw({});
        ImGui::LogFinish();
        ImGui::Render();
        return clipboard_;
    }
    void settle() {
        app::settle(program_, [&] { frame(); });
    }
    // A click on an item, near its left edge.
    void press(const std::string& name, bool twice = false) {
        const auto found = draw::items::find(name);
        ASSERT_TRUE(found) << "no item is called " << name;
        ImGuiIO& io = ImGui::GetIO();
        io.MousePos = {found->min.x + (found->max.x - found->min.x) * 0.1F,
                       (found->min.y + found->max.y) / 2};
        frame();
        for (int i = 0; i < (twice ? 2 : 1); ++i) {
            for (const bool down : {true, false}) {
                io.MouseDown[0] = down;
                frame();
            }
        }
        io.MousePos = {-1e9F, -1e9F};
        settle();
    }

    Program program_;
    Shell shell_{program_};
};

}  // namespace shardscope::viewer::app
