// See stage.h.
#include "viewer/app/stage.h"

#include <imgui.h>

#include "viewer/app/style.h"

namespace shardscope::viewer {

Stage::Stage(Program& program, Surface& surface, float display_scale)
    : program_(program), surface_(surface), shell_(program), display_scale_(display_scale) {}

void Stage::restyle() {
    if (!program_.restyle) return;
    program_.restyle = false;
    const float scale = display_scale_ * static_cast<float>(program_.zoom) / 100;
    apply_style(scale);
    if (scale == scale_) return;
    const bool first = scale_ == 0;
    scale_ = scale;
    ImGui::GetIO().Fonts->Clear();
    load_fonts(scale);
    if (!first) surface_.reload_fonts();  // the first time the backend takes them with its first frame
}

void Stage::frame(Frame description, const std::function<void()>& input) {
    restyle();
    surface_.begin_frame();
    if (input) input();
    description.scale = scale_;
    ImGui::NewFrame();
    shell_.draw(description);
    ImGui::Render();
}

}  // namespace shardscope::viewer
