// Draws a window's panes (panes.h) and takes the mouse on their headings and on the bars between them. A
// single pane has no heading. Items: "pane.1", "pane.1.heading", "pane.1.<panel>" in its open list,
// "pane.1.close", "pane.focus", "panes" (as text), "splitter.1". Drawing layer (Dear ImGui); frame thread
// only.
#pragma once

#include <cstddef>
#include <functional>

#include "viewer/app/program.h"

namespace shardscope::viewer::app {

class PanesView {
  public:
    // Fills the current window. `draw_panel` draws into the window of a pane.
    void draw(Program& program, const std::function<void(model::Panel&)>& draw_panel);

  private:
    void draw_pane(Program& program, std::size_t pane, const PaneRect& at,
                   const std::function<void(model::Panel&)>& draw_panel);
    static void draw_heading(Program& program, std::size_t pane);
    static void draw_bars(Program& program, const Panes::Places& places);

    std::size_t focus_ = 0, count_ = 1;  // in the last frame
};

}  // namespace shardscope::viewer::app
