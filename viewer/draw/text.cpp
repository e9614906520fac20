// See text.h.
#include "viewer/draw/text.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/short_name.h"

namespace shardscope::viewer::draw {
namespace {

// CalcTextSize rounds up, and the error adds up over characters.
float exact_width(std::string_view text) {
    return ImGui::GetFont()
        ->CalcTextSizeA(ImGui::GetFontSize(), FLT_MAX, 0, text.data(), text.data() + text.size())
        .x;
}

constexpr std::string_view kDots = "...";
constexpr std::size_t kLongestLine = 16 << 10;  // bytes: no screen has room for more

// Reads no more of the text than the width holds.
bool fits(std::string_view t, float width) {
    if (t.empty()) return true;
    if (t.size() > kLongestLine) return false;
    const char* rest = nullptr;
    ImGui::GetFont()->CalcTextSizeA(ImGui::GetFontSize(), width + 0.01F, 0, t.data(), t.data() + t.size(),
                                    &rest);
    return rest == t.data() + t.size();
}

std::string one_line(std::string t) {
    std::replace_if(
        t.begin(), t.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    return t;
}

// As much of both ends as fits, at least one character.
std::string fit_middle(std::string_view t, float width) {
    if (fits(t, width)) return one_line(std::string(t));
    const float dots = width_of(kDots);
    const bool both = width > dots * 2;
    const float room = both ? width - dots : width;
    std::size_t head = 0, tail = t.size();
    float left = 0, right = 0;
    while (head < tail) {
        const bool front = !both || left <= right;
        const std::size_t bytes = front ? first_character(t.substr(head)) : last_character(t.substr(0, tail));
        const float wide = exact_width(t.substr(front ? head : tail - bytes, bytes));
        if (left + right + wide > room && head > 0) break;
        (front ? left : right) += wide;
        if (front) {
            head += bytes;
        } else {
            tail -= bytes;
        }
    }
    std::string out(t.substr(0, head));
    if (both && head < tail) out += kDots;
    if (both) out += t.substr(tail);
    return one_line(std::move(out));
}

// As much of the start as fits: the first template arguments say the most.
std::string fit_start(std::string_view t, float width) {
    if (fits(t, width)) return one_line(std::string(t));
    const float room = width - width_of(kDots);
    std::size_t end = 0;
    float used = 0;
    while (end < t.size()) {
        const std::size_t bytes = first_character(t.substr(end));
        used += exact_width(t.substr(end, bytes));
        if (used > room) break;
        end += bytes;
    }
    while (end > 0 && std::string_view(" ,.<").find(t[end - 1]) != std::string_view::npos) --end;
    return one_line(std::string(t.substr(0, end))) + std::string(kDots);
}

// Cached, because every frame asks for names.
const ShortName& known_short_name(const std::string& name) {
    static const ShortName kNone;
    static std::unordered_map<std::string, ShortName> kKnown;
    static std::size_t kBytes = 0;
    if (name.size() > kLongestLine || name.find_first_of("<(") == std::string::npos) return kNone;
    const auto known = kKnown.find(name);
    if (known != kKnown.end()) return known->second;
    constexpr std::size_t kMostBytes = 8 << 20;
    if (kBytes > kMostBytes) {
        kKnown.clear();
        kBytes = 0;
    }
    kBytes += 4 * name.size() + sizeof(ShortName);
    return kKnown.emplace(name, short_name(name)).first->second;
}

// Where the texts being drawn wrap, the innermost last.
std::vector<float>& wraps() {
    static std::vector<float> kWraps;
    return kWraps;
}

void move_to_right(std::string_view text) {
    const float space = ImGui::GetContentRegionAvail().x - width_of(text);
    if (space > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + space);
}

}  // namespace

float width_of(std::string_view text) {
    return ImGui::CalcTextSize(text.data(), text.data() + text.size()).x;
}

void text_right(std::string_view t) {
    move_to_right(t);
    text(t);
}

void text_right_dim(std::string_view t) {
    ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetColorU32(ImGuiCol_TextDisabled));
    text_right(t);
    ImGui::PopStyleColor();
}

void text_in(ImU32 color, std::string_view t) {
    ImGui::PushStyleColor(ImGuiCol_Text, color);
    text(t);
    ImGui::PopStyleColor();
}

void text_dim(std::string_view t) {
    text_in(ImGui::GetColorU32(ImGuiCol_TextDisabled), t);
}

void text_fit_dim(const std::string& t) {
    ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetColorU32(ImGuiCol_TextDisabled));
    text_fit(t);
    ImGui::PopStyleColor();
}

void number_right(const std::string& t, double number) {
    const float room = ImGui::GetContentRegionAvail().x;
    if (fits(t, room)) return text_right(t);
    const bool plain = t.find_first_not_of("0123456789,.+-") == std::string::npos && std::isfinite(number);
    std::string shown = plain ? (t.starts_with('+') ? "+" : "") + format_short(number) : t;
    if (!fits(shown, room)) shown = fit_middle(shown, room);
    text_right(shown);
    if (ImGui::IsItemHovered()) full_text_tip(t);
}

std::string fit_text(const std::string& t, float width) {
    if (fits(t, width)) return one_line(t);
    const ShortName& name = known_short_name(t);
    for (const std::string& form : name.forms)
        if (fits(form, width)) return one_line(form);
    if (name.forms.empty()) return fit_middle(t, width);
    if (name.inner.empty()) return fit_middle(name.forms.back(), width);
    const float room = width - width_of(name.head) - width_of(name.tail);
    if (room > width_of(kDots)) return one_line(name.head) + fit_start(name.inner, room) + name.tail;
    return fit_middle(name.head.substr(0, name.head.size() - 1) + name.tail.substr(1), width);
}

std::string fit_in_combo(const std::string& t, float width) {
    return fit_text(t, width - ImGui::GetFrameHeight() - 2 * ImGui::GetStyle().FramePadding.x);
}

void text_fit(const std::string& t) {
    const std::string shown = fit_text(t, ImGui::GetContentRegionAvail().x);
    text(shown);
    if (shown != t && ImGui::IsItemHovered()) full_text_tip(t);
}

void full_text_tip(std::string_view t) {
    constexpr std::size_t kMost = 4000;
    ImGui::BeginTooltip();
    begin_wrap(ImGui::GetFontSize() * 60);
    std::size_t end = std::min(kMost, t.size());
    while (end > 0 && inside_character(t, end)) --end;
    text(t.substr(0, end));
    if (end < t.size())
        text(fmt::format("... ({} bytes in all)", format_count(static_cast<std::int64_t>(t.size()))));
    end_wrap();
    ImGui::EndTooltip();
}

void flow(float width) {
    const bool first = ImGui::GetCursorPosX() <= ImGui::GetCursorStartPos().x + 1;
    if (!first && ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
}

float button_width(std::string_view label) {
    return ImGui::CalcTextSize(label.data(), label.data() + label.size(), true).x +
           2 * ImGui::GetStyle().FramePadding.x;
}

bool named_button(const char* label, std::string_view item) {
    const bool clicked = ImGui::Button(label);
    const std::string_view shown = label;
    items::mark(item, shown.substr(0, shown.find("##")));
    return clicked;
}

// Dear ImGui breaks lines after any point and comma, in numbers, too.
void text(std::string_view t) {
    if (wraps().empty()) return ImGui::TextUnformatted(t.data(), t.data() + t.size());
    const float x = wraps().back();
    const float room = x > 0 ? x - ImGui::GetCursorPosX() : ImGui::GetContentRegionAvail().x;
    const std::string lines = lines_of(t, [&](std::string_view line) { return fits(line, room); });
    ImGui::TextUnformatted(lines.data(), lines.data() + lines.size());
}

void begin_wrap(float x) {
    wraps().push_back(x);
    ImGui::PushTextWrapPos(x);  // for words that are longer than a line
}

void end_wrap() {
    wraps().pop_back();
    ImGui::PopTextWrapPos();
}

void wrapped(std::string_view t) {
    begin_wrap();
    text(t);
    end_wrap();
}

void wrapped_in(ImU32 color, std::string_view t) {
    ImGui::PushStyleColor(ImGuiCol_Text, color);
    wrapped(t);
    ImGui::PopStyleColor();
}

void note(std::string_view t) {
    wrapped_in(ImGui::GetColorU32(ImGuiCol_TextDisabled), t);
}

void heading(std::string_view t) {
    ImGui::Dummy({0, ImGui::GetFontSize() * 0.2F});
    const ImVec2 at = ImGui::GetCursorScreenPos();
    wrapped(t);
    const float y = at.y + ImGui::GetFontSize() * 0.55F;
    const float from = at.x + width_of(t) + ImGui::GetFontSize() * 0.6F;
    const float to = at.x + ImGui::GetContentRegionAvail().x;
    if (to > from)
        ImGui::GetWindowDrawList()->AddLine({from, y}, {to, y}, ImGui::GetColorU32(ImGuiCol_Separator));
}

void number_cell(const std::string& t, double number, double share, ImU32 color) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const float filled = width * static_cast<float>(std::clamp(share, 0.0, 1.0));
    if (filled >= 0.5F) {
        ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + filled, at.y + ImGui::GetTextLineHeight()},
                                                  (color & 0x00FFFFFFU) | 0x70000000U);
    }
    number_right(t, number);
}

void swatch(ImU32 color) {
    const float size = ImGui::GetFontSize() * 0.7F;
    // Beside buttons Dear ImGui draws text lower in its line; an empty text gives the position.
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
        begin_wrap(ImGui::GetFontSize() * 50);
        text(title.substr(0, 2000));
        end_wrap();
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

float headers_row(const std::vector<bool>& numbers) {
    int lines = 1;
    for (int i = 0; i < ImGui::TableGetColumnCount(); ++i) {
        if (std::strchr(ImGui::TableGetColumnName(i), '\n') != nullptr) lines = 2;
    }
    const float height =
        ImGui::GetTextLineHeight() * static_cast<float>(lines) + 2 * ImGui::GetStyle().CellPadding.y;
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers, height);
    for (int i = 0; i < ImGui::TableGetColumnCount(); ++i) {
        if (!ImGui::TableSetColumnIndex(i)) continue;
        // The header itself stays empty (it sorts and shows the arrow); its text is aligned with the end of
        // the numbers.
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
            // A name of a file may be wider than its column; the columns of numbers have room for theirs.
            const std::string shown = right ? std::string(line) : fit_text(std::string(line), width);
            const float x = right ? at.x + std::max(0.0F, width - width_of(line)) : at.x;
            const ImU32 ink = ImGui::GetColorU32(y > at.y ? ImGuiCol_TextDisabled : ImGuiCol_Text);
            ImGui::GetWindowDrawList()->AddText({x, y}, ink, shown.c_str());
            y += ImGui::GetTextLineHeight();
        }
    }
    return height;
}

}  // namespace shardscope::viewer::draw
