// The mouse and keyboard that a script operates in place of a user. Drawing layer (Dear ImGui); frame thread.
#pragma once

#include <optional>
#include <string>

#include <imgui.h>

#include "viewer/model/keys.h"

namespace shardscope::viewer::script {

struct Input {
    ImVec2 mouse{-1e6F, -1e6F};  // far outside: no mouse
    bool left = false, right = false, ctrl = false, shift = false;
    // For one frame:
    float wheel = 0;
    std::optional<model::Chord> key;  // key that goes down or up
    bool key_down = false;
    std::string text;   // characters to type
    float seconds = 0;  // seconds that pass before this frame; 0: as the surface measures
};

// Call between the surface's begin_frame() and ImGui::NewFrame(). Overrides a backend's input.
void apply(const Input& input);

}  // namespace shardscope::viewer::script
