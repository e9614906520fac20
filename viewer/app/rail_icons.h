// Draws the icon of a panel. Drawing layer (Dear ImGui).
#pragma once

#include <span>

#include <imgui.h>

#include "viewer/panels/panel_table.h"

namespace shardscope::viewer {

void draw_icon(ImDrawList& list, std::span<const Stroke> icon, ImVec2 at, float size, ImU32 color);

}  // namespace shardscope::viewer
