// See panes_view.h.
#include "viewer/app/panes_view.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_internal.h>

#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/panel_table.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {
namespace {

constexpr ImGuiWindowFlags kStill = ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;

float gap() {
    return std::round(ImGui::GetFontSize() * 0.8F);
}

bool mouse_pressed() {
    return ImGui::IsMouseClicked(ImGuiMouseButton_Left) || ImGui::IsMouseClicked(ImGuiMouseButton_Right);
}

void draw_cross(ImVec2 min, ImVec2 max, theme::Color color) {
    const float in = (max.x - min.x) * 0.32F, thick = std::max(1.0F, ImGui::GetFontSize() * 0.09F);
    ImDrawList& list = *ImGui::GetWindowDrawList();
    list.AddLine({min.x + in, min.y + in}, {max.x - in, max.y - in}, color, thick);
    list.AddLine({max.x - in, min.y + in}, {min.x + in, max.y - in}, color, thick);
}

void draw_arrow(ImVec2 middle, theme::Color color) {
    const float r = ImGui::GetFontSize() * 0.22F;
    ImGui::GetWindowDrawList()->AddTriangleFilled({middle.x - r, middle.y - r * 0.6F},
                                                  {middle.x + r, middle.y - r * 0.6F},
                                                  {middle.x, middle.y + r * 0.8F}, color);
}

}  // namespace

void PanesView::draw(Program& program, const std::function<void(model::Panel&)>& draw_panel) {
    Panes& panes = program.panes;
    draw::items::value("panes", panes.text());
    draw::items::value("pane.focus", fmt::format("{}", panes.focus() + 1));
    // A key that moves the focus takes the keyboard away from fields and tables of the pane before.
    const bool moved = focus_ != panes.focus() || count_ != panes.count();
    focus_ = panes.focus();
    count_ = panes.count();
    if (moved) ImGui::ClearActiveID();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const Panes::Places places = panes.places(room.x, room.y, gap());
    if (panes.count() == 1) {
        if (moved) ImGui::SetWindowFocus();
        draw_panel(program.shown());
        return;
    }
    draw_bars(program, places);
    const std::size_t count = places.panes.size(), front = panes.focus();
    const ImVec2 corner = ImGui::GetWindowPos();
    // The focused pane last, so that names of items that several panels have are its own.
    for (std::size_t i = 1; i <= count; ++i) {
        const std::size_t pane = (front + i) % count;
        const PaneRect& at = places.panes[pane];
        if (at.width < 1 || at.height < 1) continue;
        ImGui::SetCursorScreenPos({corner.x + at.x, corner.y + at.y});
        if (moved && pane == front) ImGui::SetNextWindowFocus();
        draw_pane(program, pane, at, draw_panel);
        if (panes.count() != count) return;  // it was closed
    }
    focus_ = panes.focus();  // a click has moved it, and Dear ImGui's own focus with it
}

void PanesView::draw_pane(Program& program, std::size_t pane, const PaneRect& at,
                          const std::function<void(model::Panel&)>& draw_panel) {
    model::Panel& panel = program.panel(program.panes.panel(pane));
    const std::string name = fmt::format("pane {}", pane);
    ImGui::BeginChild(name.c_str(), {at.width, at.height}, false, kStill);
    const ImVec2 min = ImGui::GetWindowPos();
    draw::items::place(fmt::format("pane.{}", pane + 1), min, {min.x + at.width, min.y + at.height},
                       panel.name());
    draw_heading(program, pane);
    ImGui::BeginChild("content", {0, 0}, false, ImGuiWindowFlags_NoScrollWithMouse);
    draw_panel(panel);
    ImGui::EndChild();
    constexpr ImGuiHoveredFlags kInside =
        ImGuiHoveredFlags_ChildWindows | ImGuiHoveredFlags_AllowWhenBlockedByActiveItem;
    if (mouse_pressed() && ImGui::IsWindowHovered(kInside) && program.panes.pane_of(panel.name()))
        program.panes.set_focus(*program.panes.pane_of(panel.name()));
    ImGui::EndChild();
}

// The panel's title, which opens a list of all panels, and a cross that closes the pane.
void PanesView::draw_heading(Program& program, std::size_t pane) {
    const float font = ImGui::GetFontSize(), height = std::round(font * 1.55F);
    const ImVec2 min = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const bool here = program.panes.focus() == pane;
    ImDrawList& list = *ImGui::GetWindowDrawList();
    list.AddRectFilled(min, {min.x + width, min.y + height}, here ? theme::raised() : theme::surface(),
                       font * 0.2F);
    if (here) list.AddRectFilled(min, {min.x + width, min.y + std::round(font * 0.14F)}, theme::accent());
    const std::string title(panels::panel_title(program.panes.panel(pane)));
    const float y = min.y + std::round((height - font) / 2), end = ImGui::CalcTextSize(title.c_str()).x;
    if (draw::place_button("heading", {std::min(end + font * 2.2F, width - height), height}))
        ImGui::OpenPopup("panels");
    draw::items::mark(fmt::format("pane.{}.heading", pane + 1), title);
    const bool over = ImGui::IsItemHovered();
    const theme::Color color = here || over ? theme::text() : theme::text_dim();
    list.AddText({min.x + font * 0.6F, y}, color, title.c_str());
    draw_arrow({min.x + font * 1.3F + end, min.y + height / 2}, color);
    if (ImGui::BeginPopup("panels")) {
        for (const auto& panel : program.panels) {
            const std::string name(panel->name()), one(panels::panel_title(name));
            if (ImGui::MenuItem(one.c_str(), nullptr, name == program.panes.panel(pane)))
                program.put(pane, name);
            draw::items::mark(fmt::format("pane.{}.{}", pane + 1, name), one);
        }
        ImGui::EndPopup();
    }
    const ImVec2 cross{min.x + width - height, min.y};
    ImGui::SetCursorScreenPos(cross);
    const bool closed = draw::place_button("close", {height, height});
    draw::items::mark(fmt::format("pane.{}.close", pane + 1));
    draw_cross(cross, {cross.x + height, cross.y + height},
               ImGui::IsItemHovered() ? theme::bad() : theme::text_dim());
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Close the pane");
    ImGui::SetCursorScreenPos({min.x, min.y + height + std::round(font * 0.35F)});
    if (!closed) return;
    program.panes.set_focus(pane);
    program.panes.close();
}

void PanesView::draw_bars(Program& program, const Panes::Places& places) {
    const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetContentRegionAvail();
    ImDrawList& list = *ImGui::GetWindowDrawList();
    for (std::size_t i = 0; i < places.bars.size(); ++i) {
        const auto& [split, at, whole] = places.bars[i];
        const bool beside = split == Split::beside;
        const ImVec2 min{corner.x + at.x, corner.y + at.y}, max{min.x + at.width, min.y + at.height};
        ImGui::SetCursorScreenPos(min);
        draw::place_button(fmt::format("splitter {}", i).c_str(), {at.width, at.height});
        draw::items::mark(fmt::format("splitter.{}", i + 1));
        const bool held = ImGui::IsItemActive(), over = ImGui::IsItemHovered();
        if (held || over)
            ImGui::SetMouseCursor(beside ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        if (over && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
            program.panes.drag(i, whole.x + whole.width / 2, whole.y + whole.height / 2, size.x, size.y,
                               gap());
        } else if (held && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 1)) {
            program.panes.drag(i, mouse.x - corner.x, mouse.y - corner.y, size.x, size.y, gap());
        }
        const ImVec2 middle{std::floor((min.x + max.x) / 2), std::floor((min.y + max.y) / 2)};
        const theme::Color color = held || over ? theme::accent() : theme::hover();
        const float thick = std::max(1.0F, std::round(ImGui::GetFontSize() * (held || over ? 0.2F : 0.1F)));
        if (beside) {
            list.AddRectFilled({middle.x, min.y}, {middle.x + thick, max.y}, color);
        } else {
            list.AddRectFilled({min.x, middle.y}, {max.x, middle.y + thick}, color);
        }
    }
}

}  // namespace shardscope::viewer::app
