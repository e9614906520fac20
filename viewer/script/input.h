// A mouse and a keyboard that a script moves in place of a person. Drawing layer (Dear ImGui); frame thread.
#pragma once

#include <optional>
#include <string>

#include <imgui.h>

#include "viewer/model/keys.h"

namespace shardscope::viewer::script {

struct Input {
    ImVec2 mouse{-1e6F, -1e6F};  // outside: no mouse
    bool left = false, right = false, ctrl = false, shift = false;
    // For one frame:
    float wheel = 0;
    std::optional<Chord> key;  // goes down or up
    bool key_down = false;
    std::string text;   // characters that are typed
    float seconds = 0;  // that pass before this frame; 0: as the surface says
};

// Lets editing keys (Backspace, Ctrl+A ...) reach text fields where no backend has said which keys they are.
// Once, after ImGui::CreateContext().
void prepare_keys();

// Between the surface's begin_frame() and ImGui::NewFrame(). What a backend found is overridden.
void apply(const Input& input);

}  // namespace shardscope::viewer::script
