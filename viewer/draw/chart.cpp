// See chart.h.
#include "viewer/draw/chart.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "viewer/draw/text.h"

namespace shardscope::viewer::draw {
namespace {

ImVec2 size_of(std::string_view text) {
    return ImGui::CalcTextSize(text.data(), text.data() + text.size());
}

void put(ImDrawList* draw, ImVec2 at, ImU32 color, std::string_view text) {
    draw->AddText({std::floor(at.x), std::floor(at.y)}, color, text.data(), text.data() + text.size());
}

// Rectangles of one stack over [x0, x1], bottom up.
void draw_stack(const Chart& chart, float x0, float x1, const traces::analysis::CategoryBytes& bytes,
                const CategoryColors& colors, float opacity) {
    double below = 0;
    for (std::size_t c = 0; c < bytes.size(); ++c) {
        if (bytes[c] <= 0) continue;
        const auto bottom = static_cast<float>(chart.y.pixel(below));
        below += static_cast<double>(bytes[c]);
        const auto top = static_cast<float>(chart.y.pixel(below));
        chart.draw->AddRectFilled({x0, top}, {x1, bottom},
                                  opacity < 1 ? faded(colors[c], opacity) : colors[c]);
    }
}

void draw_frame(const Chart& chart, const std::vector<Tick>& x_ticks, const std::vector<Tick>& y_ticks) {
    const ImU32 grid = faded(ImGui::GetColorU32(ImGuiCol_TextDisabled), 0.18F);
    const ImU32 ink = ImGui::GetColorU32(ImGuiCol_TextDisabled);
    const float gap = ImGui::GetFontSize() * 0.4F;
    chart.draw->AddRectFilled(chart.min, chart.max, faded(ImGui::GetColorU32(ImGuiCol_FrameBg), 0.5F));
    for (const Tick& tick : y_ticks) {
        const auto y = std::floor(static_cast<float>(chart.y.pixel(tick.value)));
        const ImVec2 size = size_of(tick.label);
        chart.draw->AddRectFilled({chart.min.x, y}, {chart.max.x, y + 1}, grid);
        put(chart.draw, {chart.min.x - size.x - gap, y - size.y / 2}, ink, tick.label);
    }
    for (const Tick& tick : x_ticks) {
        const auto x = std::floor(static_cast<float>(chart.x.pixel(tick.value)));
        const ImVec2 size = size_of(tick.label);
        chart.draw->AddRectFilled({x, chart.max.y}, {x + 1, chart.max.y + gap * 0.6F}, ink);
        const float left =
            std::clamp(x - size.x / 2, chart.min.x, std::max(chart.min.x, chart.max.x - size.x));
        put(chart.draw, {left, chart.max.y + gap * 0.7F}, ink, tick.label);
    }
}

// The ticks that a chart with a logarithmic axis draws.
std::vector<Tick> log_ticks(double low, double high, int count, AxisUnit unit) {
    std::vector<Tick> ticks = make_log_ticks(low, high, count, unit);
    for (Tick& tick : ticks) tick.value = std::log10(tick.value);
    return ticks;
}

float angle_of(double share) {
    return static_cast<float>((share * 2 - 0.5) * std::numbers::pi);
}

}  // namespace

ImU32 faded(ImU32 color, float share) {
    const auto alpha = static_cast<ImU32>(static_cast<float>(color >> IM_COL32_A_SHIFT) * share);
    return (color & ~IM_COL32_A_MASK) | (alpha << IM_COL32_A_SHIFT);
}

ImU32 text_on(ImU32 color) {
    const ImVec4 c = ImGui::ColorConvertU32ToFloat4(color);
    const float light = 0.299F * c.x + 0.587F * c.y + 0.114F * c.z;
    return light > 0.52F ? IM_COL32(16, 18, 22, 255) : IM_COL32(255, 255, 255, 255);
}

Chart begin_chart(const char* id, ImVec2 size, const ChartAxes& axes) {
    const float font = ImGui::GetFontSize();
    Chart chart;
    chart.draw = ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float bottom = axes.x_ticks ? font * 1.6F : font * 0.4F;
    const float inner_height = std::max(font * 2, size.y - bottom - font * 0.5F);
    const int y_count = std::clamp(static_cast<int>(inner_height / (font * 2.2F)), 2, 10);
    const std::vector<Tick> y_ticks = axes.y_log ? log_ticks(axes.y_low, axes.y_high, y_count, axes.y_unit)
                                                 : make_ticks(axes.y_low, axes.y_high, y_count, axes.y_unit);
    float label_width = axes.label_room;
    for (const Tick& tick : y_ticks) label_width = std::max(label_width, size_of(tick.label).x);

    chart.min = {std::floor(at.x + label_width + font * 0.5F), std::floor(at.y + font * 0.5F)};
    chart.max = {std::floor(std::max(chart.min.x + font * 2, at.x + size.x)),
                 std::floor(chart.min.y + inner_height)};
    if (axes.inside) {
        chart.min.x = axes.inside->left;
        chart.max.x = std::max(chart.min.x + font * 2, axes.inside->right);
    }
    const auto mapped = [](double value, bool log) { return log ? std::log10(value) : value; };
    chart.x = {mapped(axes.x_low, axes.x_log), mapped(axes.x_high, axes.x_log), chart.min.x, chart.max.x};
    chart.y = {mapped(axes.y_low, axes.y_log), mapped(axes.y_high, axes.y_log), chart.max.y, chart.min.y};

    std::vector<Tick> x_ticks;
    if (axes.x_ticks) {
        const int x_count = std::clamp(static_cast<int>(chart.width() / (font * 6.5F)), 2, 16);
        if (axes.x_log) {
            x_ticks = log_ticks(axes.x_low, axes.x_high, x_count, axes.x_unit);
        } else {
            x_ticks = make_ticks(axes.x_low - axes.x_zero, axes.x_high - axes.x_zero, x_count, axes.x_unit);
            if (axes.x_whole && axes.x_unit == AxisUnit::count)
                std::erase_if(x_ticks, [](const Tick& t) { return t.value != std::round(t.value); });
            for (Tick& tick : x_ticks) tick.value += axes.x_zero;
        }
    }
    draw_frame(chart, x_ticks, y_ticks);
    place_button(id, size);
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    chart.hovered = ImGui::IsItemHovered() && mouse.x >= chart.min.x && mouse.x < chart.max.x &&
                    mouse.y >= chart.min.y && mouse.y < chart.max.y;
    return chart;
}

void stacked_area(const Chart& chart, std::span<const FoldedColumn> columns, const CategoryColors& colors) {
    if (columns.empty()) return;
    const float step = chart.width() / static_cast<float>(columns.size());
    for (const ColumnRun& run : equal_runs(columns)) {
        const FoldedColumn& column = columns[static_cast<std::size_t>(run.first)];
        const float x0 = chart.min.x + step * static_cast<float>(run.first);
        const float x1 = x0 + step * static_cast<float>(run.count);
        if (column.highest != column.lowest) draw_stack(chart, x0, x1, column.at_highest, colors, 0.45F);
        draw_stack(chart, x0, x1, column.at_lowest, colors, 1);
    }
}

void stepped_line(const Chart& chart, std::span<const LineColumn> columns, ImU32 color, float thick) {
    if (columns.empty()) return;
    const float step = chart.width() / static_cast<float>(columns.size());
    const auto y = [&](std::int64_t bytes) {
        return std::clamp(static_cast<float>(chart.y.pixel(static_cast<double>(bytes))), chart.min.y,
                          chart.max.y);
    };
    for (std::size_t i = 0; i < columns.size();) {
        const LineColumn& column = columns[i];
        std::size_t next = i + 1;
        while (next < columns.size() && column.lowest == column.highest && columns[next] == column) ++next;
        const float x0 = chart.min.x + step * static_cast<float>(i);
        const float x1 = chart.min.x + step * static_cast<float>(next);
        // From the value carried in to the extremes of this column.
        float top = y(column.highest), bottom = y(column.lowest);
        if (i > 0) {
            const LineColumn& before = columns[i - 1];
            top = std::min(top, y(std::max(before.lowest, std::min(before.highest, column.first))));
            bottom = std::max(bottom, y(std::min(before.highest, std::max(before.lowest, column.first))));
        }
        chart.draw->AddRectFilled({x0, top - thick / 2}, {std::max(x1, x0 + thick), bottom + thick / 2},
                                  color);
        i = next;
    }
}

void folded_line(const Chart& chart, std::span<const PlotColumn> columns, int count, ImU32 color,
                 float thick) {
    const float step = chart.width() / static_cast<float>(std::max(1, count));
    const auto at = [&](const PlotColumn& column, double y) {
        return ImVec2{chart.min.x + step * (static_cast<float>(column.column) + 0.5F),
                      static_cast<float>(chart.y.pixel(y))};
    };
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const PlotColumn& c = columns[i];
        if (c.highest > c.lowest) chart.draw->AddLine(at(c, c.highest), at(c, c.lowest), color, thick);
        const bool joined = i > 0 && !c.apart;
        if (joined)
            chart.draw->AddLine(at(columns[i - 1], columns[i - 1].last), at(c, c.first), color, thick);
        const bool alone = !joined && (i + 1 == columns.size() || columns[i + 1].apart);
        if (alone && c.highest == c.lowest) chart.draw->AddCircleFilled(at(c, c.first), thick, color, 8);
    }
}

void level_line(const Chart& chart, double y, ImU32 color, std::string_view label, bool label_right) {
    const auto at = std::floor(static_cast<float>(chart.y.pixel(y)));
    const float dash = ImGui::GetFontSize() * 0.5F;
    for (float x = chart.min.x; x < chart.max.x; x += dash * 2) {
        chart.draw->AddRectFilled({x, at}, {std::min(x + dash, chart.max.x), at + 1.5F}, color);
    }
    const ImVec2 size = size_of(label);
    const float x = label_right ? chart.max.x - size.x - dash : chart.min.x + dash;
    const float above = at - size.y - 1;
    put(chart.draw, {x, above >= chart.min.y ? above : at + 2}, color, label);
}

void marker_line(const Chart& chart, double x, ImU32 color, std::string_view label) {
    const auto at = std::floor(static_cast<float>(chart.x.pixel(x)));
    if (at < chart.min.x || at >= chart.max.x) return;
    chart.draw->AddRectFilled({at, chart.min.y}, {at + 1.5F, chart.max.y}, color);
    if (label.empty()) return;
    const float gap = ImGui::GetFontSize() * 0.35F;
    const ImVec2 size = size_of(label);
    const bool left = at + size.x + 3 * gap > chart.max.x;
    const ImVec2 from = {left ? at - size.x - 2 * gap : at + gap, chart.min.y + gap};
    chart.draw->AddRectFilled({from.x - gap * 0.6F, from.y - gap * 0.3F},
                              {from.x + size.x + gap * 0.6F, from.y + size.y + gap * 0.3F},
                              faded(ImGui::GetColorU32(ImGuiCol_PopupBg), 0.92F), gap * 0.5F);
    put(chart.draw, from, color, label);
}

void crosshair(const Chart& chart) {
    if (!chart.hovered) return;
    const float x = std::floor(ImGui::GetIO().MousePos.x);
    chart.draw->AddRectFilled({x, chart.min.y}, {x + 1, chart.max.y},
                              faded(ImGui::GetColorU32(ImGuiCol_Text), 0.6F));
}

int stacked_bar(ImVec2 at, ImVec2 size, std::span<const Segment> segments, double full, bool labels) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(at, {at.x + size.x, at.y + size.y},
                        faded(ImGui::GetColorU32(ImGuiCol_FrameBg), 0.6F));
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const bool inside = ImGui::IsWindowHovered() && mouse.y >= at.y && mouse.y < at.y + size.y;
    int hovered = -1;
    double sum = 0;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const Segment& segment = segments[i];
        if (segment.value <= 0 || full <= 0) continue;
        const float x0 = at.x + size.x * static_cast<float>(sum / full);
        sum += segment.value;
        const float x1 = at.x + size.x * static_cast<float>(std::min(1.0, sum / full));
        // One pixel of gap separates neighbours without an outline; slivers keep their whole width.
        const float gap = x1 - x0 > 4 ? 1.0F : 0.0F;
        draw->AddRectFilled({x0, at.y}, {x1 - gap, at.y + size.y}, segment.color);
        if (inside && mouse.x >= x0 && mouse.x < x1) hovered = static_cast<int>(i);
        const ImVec2 text = size_of(segment.label);
        if (labels && text.x + 8 < x1 - x0 && text.y <= size.y) {
            put(draw, {(x0 + x1 - text.x) / 2, at.y + (size.y - text.y) / 2}, text_on(segment.color),
                segment.label);
        }
    }
    return hovered;
}

int donut(const char* id, float size, std::span<const Segment> segments, std::string_view big,
          std::string_view small) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    place_button(id, {size, size});
    const ImVec2 center = {at.x + size / 2, at.y + size / 2};
    const float thickness = size * 0.16F;
    const float radius = size / 2 - thickness / 2 - 1;
    const double total =
        std::accumulate(segments.begin(), segments.end(), 0.0,
                        [](double sum, const Segment& s) { return sum + std::max(0.0, s.value); });
    const ImVec2 mouse = {ImGui::GetIO().MousePos.x - center.x, ImGui::GetIO().MousePos.y - center.y};
    const float distance = std::hypot(mouse.x, mouse.y);
    const bool inside = ImGui::IsItemHovered() && std::abs(distance - radius) <= thickness / 2;
    double turn = std::atan2(mouse.x, -mouse.y) / (2 * std::numbers::pi);
    if (turn < 0) turn += 1;

    int hovered = -1;
    double sum = 0;
    for (std::size_t i = 0; i < segments.size() && total > 0; ++i) {
        if (segments[i].value <= 0) continue;
        const double from = sum / total;
        sum += segments[i].value;
        const double to = sum / total;
        if (inside && turn >= from && turn < to) hovered = static_cast<int>(i);
        const int pieces = std::max(2, static_cast<int>(std::ceil((to - from) * 128)));
        draw->PathArcTo(center, radius, angle_of(from), angle_of(to), pieces);
        draw->PathStroke(hovered == static_cast<int>(i) ? segments[i].color : faded(segments[i].color, 0.92F),
                         0, thickness);
    }
    if (total <= 0) draw->AddCircle(center, radius, ImGui::GetColorU32(ImGuiCol_FrameBg), 64, thickness);
    const ImVec2 big_size = size_of(big), small_size = size_of(small);
    put(draw, {center.x - big_size.x / 2, center.y - big_size.y}, ImGui::GetColorU32(ImGuiCol_Text), big);
    put(draw, {center.x - small_size.x / 2, center.y + 1}, ImGui::GetColorU32(ImGuiCol_TextDisabled), small);
    return hovered;
}

}  // namespace shardscope::viewer::draw
