// Builds the viewer's frames on any surface: style and fonts at the wanted scale, Dear ImGui's frame, the
// shell's drawing. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <functional>

#include "viewer/app/program.h"
#include "viewer/app/shell.h"
#include "viewer/backend/surface.h"

namespace shardscope::viewer::app {

class Stage {
  public:
    // `display_scale`: 2 if the display draws everything twice as large.
    // `second`: it draws the second window.
    Stage(Program& program, backend::Surface& surface, float display_scale, bool second = false);
    // Builds one frame; Surface::end_frame() paints it. `input` is called before ImGui's frame begins.
    void frame(model::Frame description, const std::function<void()>& input = {});

  private:
    void restyle();
    void take_picture();
    Program& program_;
    backend::Surface& surface_;
    Shell shell_;
    float display_scale_;
    bool second_;
    int styles_ = 0;  // Program::styles that was applied
    int frames_before_picture_ = 0;
    float scale_ = 0;  // the scale that the fonts were made for
};

}  // namespace shardscope::viewer::app
