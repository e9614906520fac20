// See text.h.
#include "viewer/draw/text.h"

#include <algorithm>
#include <cstring>

#include "viewer/draw/format.h"

namespace shardscope::viewer {
namespace {

float width_of(std::string_view text) {
    return ImGui::CalcTextSize(text.data(), text.data() + text.size()).x;
}

void move_to_right(std::string_view text) {
    const float space = ImGui::GetContentRegionAvail().x - width_of(text);
    if (space > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + space);
}

}  // namespace

void text_right(std::string_view t) {
    move_to_right(t);
    text(t);
}

void text_right_dim(std::string_view t) {
    ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetStyleColorVec4(ImGuiCol_TextDisabled));
    text_right(t);
    ImGui::PopStyleColor();
}

std::string fit_text(const std::string& t, float width) {
    const float whole = width_of(t);
    if (whole <= width || t.empty()) return t;
    // Start at the share of the text that should fit, then take characters off until it does.
    auto limit = static_cast<std::size_t>(static_cast<float>(t.size()) * std::max(0.0F, width) / whole) + 1;
    std::string shortened = shorten_middle(t, limit);
    while (limit > 1 && width_of(shortened) > width) shortened = shorten_middle(t, --limit);
    return shortened;
}

void text_fit(const std::string& t) {
    const std::string shown = fit_text(t, ImGui::GetContentRegionAvail().x);
    text(shown);
    if (shown.size() != t.size() && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", t.c_str());
}

void flow(float width) {
    const bool first = ImGui::GetCursorPosX() <= ImGui::GetCursorStartPos().x + 1;
    if (!first && ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
}

float button_width(std::string_view label) {
    return ImGui::CalcTextSize(label.data(), label.data() + label.size(), true).x +
           2 * ImGui::GetStyle().FramePadding.x;
}

void note(std::string_view t) {
    ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetStyleColorVec4(ImGuiCol_TextDisabled));
    ImGui::PushTextWrapPos(0);
    text(t);
    ImGui::PopTextWrapPos();
    ImGui::PopStyleColor();
}

void heading(std::string_view t) {
    ImGui::Dummy({0, ImGui::GetFontSize() * 0.2F});
    const ImVec2 at = ImGui::GetCursorScreenPos();
    text(t);
    const float y = at.y + ImGui::GetFontSize() * 0.55F;
    const float from = at.x + width_of(t) + ImGui::GetFontSize() * 0.6F;
    const float to = at.x + ImGui::GetContentRegionAvail().x;
    if (to > from)
        ImGui::GetWindowDrawList()->AddLine({from, y}, {to, y}, ImGui::GetColorU32(ImGuiCol_Separator));
}

void cell_bar(double share, ImU32 color, std::string_view t) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const float filled = width * static_cast<float>(std::clamp(share, 0.0, 1.0));
    if (filled >= 0.5F) {
        ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + filled, at.y + ImGui::GetTextLineHeight()},
                                                  (color & 0x00FFFFFFU) | 0x70000000U);
    }
    text_right(t);
}

void swatch(ImU32 color) {
    const float size = ImGui::GetFontSize() * 0.7F;
    // Beside buttons text stands lower in its line; an empty text says where.
    text("");
    const float line = ImGui::GetItemRectMin().y;
    ImGui::SameLine(0, 0);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float top = line + (ImGui::GetTextLineHeight() - size) * 0.55F;
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + size, top + size}, color, size * 0.15F);
    ImGui::Dummy({size, ImGui::GetTextLineHeight()});
    ImGui::SameLine(0, size * 0.5F);
}

void legend(std::span<const LegendItem> items) {
    const float size = ImGui::GetFontSize();
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
    bool first = true;
    for (const LegendItem& item : items) {
        const float width = size * 1.05F + width_of(item.label);
        if (!first) {
            const float next = ImGui::GetItemRectMax().x + size;
            if (next + width <= right) ImGui::SameLine(0, size);
        }
        swatch(item.color);
        text(item.label);
        first = false;
    }
}

void begin_tip(std::string_view title) {
    ImGui::BeginTooltip();
    if (!title.empty()) {
        text(title);
        ImGui::Separator();
    }
    if (!ImGui::BeginTable("tip", 2, ImGuiTableFlags_SizingFixedFit)) return;
}

void tip_row(std::string_view label, std::string_view value, ImU32 color) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    if (color != 0) swatch(color);
    text(label);
    ImGui::TableNextColumn();
    text_right(value);
}

void end_tip() {
    ImGui::EndTable();
    ImGui::EndTooltip();
}

void headers_row(const std::vector<bool>& numbers) {
    int lines = 1;
    for (int i = 0; i < ImGui::TableGetColumnCount(); ++i) {
        if (std::strchr(ImGui::TableGetColumnName(i), '\n') != nullptr) lines = 2;
    }
    const float height = ImGui::GetTextLineHeight() * static_cast<float>(lines);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers, height + 2 * ImGui::GetStyle().CellPadding.y);
    for (int i = 0; i < ImGui::TableGetColumnCount(); ++i) {
        if (!ImGui::TableSetColumnIndex(i)) continue;
        // The header itself stays empty (it sorts and shows the arrow); its text goes where the numbers end.
        const std::string_view name = ImGui::TableGetColumnName(i);
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float width = ImGui::GetContentRegionAvail().x;
        ImGui::PushID(i);
        ImGui::TableHeader("##header");
        ImGui::PopID();
        if (name.starts_with("##")) continue;
        const std::size_t split = std::min(name.find('\n'), name.size());
        float y = at.y;
        for (const std::string_view line :
             {name.substr(0, split), name.substr(std::min(split + 1, name.size()))}) {
            const bool right =
                static_cast<std::size_t>(i) < numbers.size() && numbers[static_cast<std::size_t>(i)];
            const float x = right ? at.x + std::max(0.0F, width - width_of(line)) : at.x;
            const ImU32 ink = ImGui::GetColorU32(y > at.y ? ImGuiCol_TextDisabled : ImGuiCol_Text);
            ImGui::GetWindowDrawList()->AddText({x, y}, ink, line.data(), line.data() + line.size());
            y += ImGui::GetTextLineHeight();
        }
    }
}

}  // namespace shardscope::viewer
