// See stage.h.
#include "viewer/app/stage.h"

#include <exception>
#include <string>
#include <utility>

#include <imgui.h>

#include "viewer/app/export.h"
#include "viewer/app/style.h"
#include "viewer/model/keys.h"

namespace shardscope::viewer::app {

Stage::Stage(Program& program, backend::Surface& surface, float display_scale, bool second)
    : program_(program),
      surface_(surface),
      shell_(program, second),
      display_scale_(display_scale),
      second_(second) {}

void Stage::restyle() {
    if (std::exchange(styles_, program_.styles) == program_.styles) return;
    const float scale = display_scale_ * static_cast<float>(program_.zoom) / 100;
    apply_style(scale);
    if (scale == scale_) return;
    const bool first = scale_ == 0;
    scale_ = scale;
    ImGui::GetIO().Fonts->Clear();
    load_fonts(scale);
    if (!first) surface_.reload_fonts();  // the backend uploads the first fonts with its first frame
}

void Stage::frame(model::Frame description, const std::function<void()>& input) {
    restyle();
    if (!second_) program_.session.animating = false;
    surface_.begin_frame();
    if (input) input();
    model::let_enter_choose();
    description.scale = scale_;
    ImGui::NewFrame();
    shell_.draw(description);
    ImGui::Render();
    take_picture();
}

// Waits a few frames after the request, so that the picture shows neither the menu nor the save window.
void Stage::take_picture() {
    constexpr int kFrames = 3;
    if (program_.picture.empty() || program_.front_is_second != second_ ||
        ++frames_before_picture_ <= kFrames)
        return;
    frames_before_picture_ = 0;
    const std::string path = std::exchange(program_.picture, {});
    try {
        if (program_.picture_of_panel) {
            write_picture(path, surface_, {program_.panel_min.x, program_.panel_min.y},
                          {program_.panel_max.x, program_.panel_max.y});
        } else {
            write_picture(path, surface_);
        }
        program_.notice = path + " is written.";
    } catch (const std::exception& error) {
        program_.notice = error.what();
    }
}

}  // namespace shardscope::viewer::app
