// See windows.h.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/app/actions.h"
#include "viewer/app/windows.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/panel_table.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {
namespace {

// --- Draws the icon of a panel.

void draw_icon(ImDrawList& list, std::span<const panels::Stroke> icon, ImVec2 at, float size, ImU32 color) {
    const float unit = size / 16, thick = unit * 1.4F;
    for (const panels::Stroke& s : icon) {
        const ImVec2 a{at.x + s.ax * unit, at.y + s.ay * unit}, b{at.x + s.bx * unit, at.y + s.by * unit};
        switch (s.shape) {
            case panels::Shape::line:
                list.AddLine(a, b, color, thick);
                break;
            case panels::Shape::box:
                list.AddRectFilled(a, b, color, unit);
                break;
            case panels::Shape::frame:
                list.AddRect(a, b, color, unit, 0, thick);
                break;
            case panels::Shape::dot:
                list.AddCircleFilled(a, s.bx * unit, color);
                break;
            case panels::Shape::ring:
                list.AddCircle(a, s.bx * unit, color, 0, thick);
                break;
        }
    }
}

constexpr float kWide = 13, kNarrow = 2.9F;  // font sizes
constexpr float kRoomForNames = 78;          // narrowest window that shows names, in font sizes

bool is_wide(const Program& program) {
    if (program.rail != RailWidth::automatic) return program.rail == RailWidth::wide;
    return ImGui::GetIO().DisplaySize.x >= kRoomForNames * ImGui::GetFontSize();
}

std::string key_of(std::string_view panel) {
    for (const Action& action : actions()) {
        if (action.id == panel) return action.keys.empty() ? "" : chord_text(action.keys.front());
    }
    return "";
}

// If the sidebar is taller than the window, scrolls to the entry of the panel that is shown.
void bring_into_sight(std::size_t index, float from, float to) {
    ImGuiStorage& kept = *ImGui::GetStateStorage();
    const auto now = static_cast<int>(index), height = static_cast<int>(ImGui::GetWindowHeight());
    int& shown = *kept.GetIntRef(ImGui::GetID("shown"), -1);
    int& at_height = *kept.GetIntRef(ImGui::GetID("height"), 0);
    if (shown == now && at_height == height) return;
    shown = now;
    at_height = height;
    const float top = ImGui::GetWindowPos().y;
    if (from < top || to > top + ImGui::GetWindowHeight()) ImGui::SetScrollHereY(1);
}

constexpr float kEntry = 1.72F, kSpace = 0.12F, kGroupGap = 0.42F;  // font sizes

bool begins_group(const Program& program, std::size_t index) {
    const auto group = [&](std::size_t i) { return panels::panel_group(program.panels[i]->name()); };
    return index > 0 && group(index) != group(index - 1);
}

// How much of their height entries and gaps get, so that all entries fit if they can.
float tightness(const Program& program, float height) {
    constexpr float kTightest = 0.72F;
    float needed = 0;
    for (std::size_t i = 0; i < program.panels.size(); ++i)
        needed += kEntry + kSpace + (begins_group(program, i) ? kGroupGap + kSpace : 0);
    return std::clamp(height / (needed * ImGui::GetFontSize()), kTightest, 1.0F);
}

void draw_entry(Program& program, std::size_t index, bool wide, float height) {
    const model::Panel& panel = *program.panels[index];
    const float font = ImGui::GetFontSize(), icon = font * 1.07F;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const std::string name(panel.name()), title(panels::panel_title(name));
    if (draw::place_button(name.c_str(), {width, height})) program.show(name);
    const bool here = program.shown().name() == name, over = ImGui::IsItemHovered();
    const bool in_sight = (!program.panes.alone() && program.panes.pane_of(name)) ||
                          (program.elsewhere && program.elsewhere->pane_of(name));
    draw::items::mark("rail." + name, here ? "shown" : in_sight ? "in sight" : title);
    if (here) bring_into_sight(index, at.y, at.y + height);
    ImDrawList& list = *ImGui::GetWindowDrawList();
    const ImVec2 end{at.x + width, at.y + height};
    if (here || over) list.AddRectFilled(at, end, here ? theme::raised() : theme::hover(), font * 0.27F);
    if (here || in_sight)
        list.AddRectFilled({at.x, at.y + font * 0.3F}, {at.x + font * 0.2F, end.y - font * 0.3F},
                           here ? theme::accent() : theme::text_dim());
    const ImU32 color = here ? theme::accent() : over ? theme::text() : theme::text_dim();
    const float indent = wide ? font * 0.75F : (width - icon) / 2;
    if (const panels::PanelEntry* entry = panels::find_panel(name)) {
        draw_icon(list, entry->icon, {at.x + indent, at.y + (height - icon) / 2}, icon, color);
    }
    if (name == "runs") {
        for (const model::OpenTrace& entry : program.session.open) {
            if (!entry.running()) continue;
            list.AddCircleFilled({at.x + indent + icon, at.y + (height - icon) / 2}, font * 0.22F,
                                 theme::good());
            draw::items::value("rail.running", run_state(entry));
            break;
        }
    }
    const std::string key = key_of(name);
    if (wide) {
        const float y = at.y + (height - font) / 2;
        list.AddText({at.x + indent + icon + font * 0.6F, y}, here ? theme::text() : theme::text_dim(),
                     title.c_str());
    } else if (over) {
        ImGui::SetTooltip("%s", fmt::format("{}  ({})", title, key).c_str());
    }
    if (wide && over && !key.empty()) {
        ImGui::SetTooltip("%s", fmt::format("Key {}", key).c_str());
    }
}

}  // namespace

float draw_rail(Program& program, float height) {
    const bool wide = program.rail_is_wide = is_wide(program);
    const float font = ImGui::GetFontSize(), width = font * (wide ? kWide : kNarrow);
    const float tight = tightness(program, height) * font;
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, tight * kSpace});
    ImGui::PushStyleVar(ImGuiStyleVar_ScrollbarSize, font * 0.4F);
    ImGui::BeginChild("rail", {width, height}, false);
    for (std::size_t i = 0; i < program.panels.size(); ++i) {
        if (begins_group(program, i)) ImGui::Dummy({0, tight * kGroupGap});
        draw_entry(program, i, wide, tight * kEntry);
    }
    ImGui::EndChild();
    ImGui::PopStyleVar(2);
    return width;
}

}  // namespace shardscope::viewer::app
