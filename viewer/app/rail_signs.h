// A small sign for each panel, drawn from lines and boxes on a grid of 16 x 16. Drawing layer (Dear ImGui).
#pragma once

#include <string_view>

#include <imgui.h>

namespace shardscope::viewer {

// A panel without a sign of its own gets a plain box.
void draw_sign(ImDrawList& list, std::string_view panel, ImVec2 at, float size, ImU32 color);

}  // namespace shardscope::viewer
