// See share_bar.h.
#include "viewer/panels/work/share_bar.h"

#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer {

namespace {

// The name with its share if both fit, else as much of the name as fits.
std::string label_of(const NameShare& part, float room) {
    if (room < ImGui::GetFontSize() * 3) return {};
    const std::string share = fmt::format(" {:.0f} %", part.percent);
    const float left = room - ImGui::CalcTextSize(share.c_str()).x;
    const bool both = left > 0 && fit_text(part.name, left) == part.name;
    return both ? part.name + share : fit_text(part.name, room);
}

}  // namespace

std::optional<std::size_t> draw_share_bar(const char* id, std::span<const NameShare> parts) {
    if (parts.empty()) return {};
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 size = {ImGui::GetContentRegionAvail().x, ImGui::GetFontSize() * 1.7F};
    std::vector<Segment> segments;
    double whole = 0;
    for (const NameShare& part : parts) {
        const float room = size.x * static_cast<float>(part.percent / 100) - ImGui::GetFontSize() * 0.8F;
        segments.push_back({part.us, part.color, label_of(part, room)});
        whole += part.us;
    }
    const int hovered = stacked_bar(at, size, segments, whole, true);
    place_button(id, size);
    const bool clicked = ImGui::IsItemClicked();
    items::mark(id);
    if (hovered < 0) return {};
    const NameShare& part = parts[static_cast<std::size_t>(hovered)];
    begin_tip(part.name);
    tip_row("Device time", format_duration(part.us * 1e3), part.color);
    tip_row("Share", format_percent(part.percent));
    end_tip();
    return clicked && part.row >= 0 ? std::optional(static_cast<std::size_t>(part.row)) : std::nullopt;
}

}  // namespace shardscope::viewer
