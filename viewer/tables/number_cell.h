// A number in a table's cell: right-aligned, over its bar, and shortened if there is no room. Drawing layer
// (Dear ImGui); frame thread only.
#pragma once

#include <string>

#include <imgui.h>

#include "viewer/draw/text.h"

namespace shardscope::viewer {

// `share`: of the bar, 0 if there is none.
inline void draw_number_cell(const std::string& value, double number, double share, ImU32 color) {
    if (share > 0) {
        const ImVec2 at = ImGui::GetCursorPos();
        cell_bar(share, color, "");
        ImGui::SetCursorPos(at);
    }
    number_right(value, number);
}

}  // namespace shardscope::viewer
