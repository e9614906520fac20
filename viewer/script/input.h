// A mouse and a keyboard that a script moves instead of a user. Drawing layer (Dear ImGui); frame thread.
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
    std::optional<Chord> key;  // goes down or up
    bool key_down = false;
    std::string text;   // characters to be typed
    float seconds = 0;  // that pass before this frame; 0: as the surface measures
};

// Lets editing keys (Backspace, Ctrl+A ...) work in text fields if no backend has defined them. To be called
// once, after ImGui::CreateContext().
void prepare_keys();

// To be called between the surface's begin_frame() and ImGui::NewFrame(). Overrides a backend's input.
void apply(const Input& input);

}  // namespace shardscope::viewer::script
