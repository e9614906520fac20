// See segmented.h.
#include "viewer/widgets/segmented.h"

#include <string>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/schema/text.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::widgets {

bool on_button(const std::string& label, bool on) {
    ImGui::PushStyleColor(ImGuiCol_Button, on ? theme::accent() : theme::raised());
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, on ? theme::accent() : theme::hover());
    ImGui::PushStyleColor(ImGuiCol_Text, on ? theme::ground() : theme::text());
    const bool clicked = ImGui::Button(label.c_str());
    ImGui::PopStyleColor(3);
    return clicked;
}

bool segmented(std::string_view id, std::span<const std::string_view> labels, int& chosen) {
    constexpr float kBetween = 2;
    bool changed = false;
    float width = -kBetween;
    for (const std::string_view label : labels) width += draw::button_width(label) + kBetween;
    draw::flow(width);
    ImGui::PushID(id.data(), id.data() + id.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (i > 0) {
            ImGui::SameLine(0, kBetween);
            draw::flow(draw::button_width(labels[i]));
        }
        if (on_button(std::string(labels[i]), chosen == static_cast<int>(i)) &&
            chosen != static_cast<int>(i)) {
            chosen = static_cast<int>(i);
            changed = true;
        }
        if (draw::items::kept())
            draw::items::mark(fmt::format("{}.{}", id, traces::schema::snake_case(labels[i])),
                              chosen == static_cast<int>(i) ? "on" : "off");
    }
    ImGui::PopID();
    return changed;
}

bool toggle_button(std::string_view id, std::string_view label, bool& on) {
    ImGui::PushID(id.data(), id.data() + id.size());
    draw::flow(draw::button_width(label));
    const bool clicked = on_button(std::string(label), on);
    if (clicked) on = !on;
    draw::items::mark(id, on ? "on" : "off");
    ImGui::PopID();
    return clicked;
}

}  // namespace shardscope::viewer::widgets
