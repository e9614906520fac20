// See memory_time_chart.h.
#include "viewer/panels/memory/memory_time_chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/columns/trace.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/time_gestures.h"

namespace shardscope::viewer {
namespace {

// Columns two pixels wide halve the rectangles of the worst case and look the same.
int column_count(float width) {
    return std::max(1, static_cast<int>(width / 2));
}

void draw_steps(const Chart& chart, const MemoryTimeChart& input) {
    const ImU32 ink = theme::text_dim();
    const float font = ImGui::GetFontSize(), gap = font * 0.3F;
    const float y = chart.max.y - font - gap;
    const TimeRange& seen = input.entry->visible;
    float last_line = -1e9F;
    for (const traces::Step& step : input.entry->trace->steps) {
        if (step.rank != input.rank_index || step.start >= seen.to || step.end <= seen.from) continue;
        const auto x = std::floor(static_cast<float>(chart.x.pixel(static_cast<double>(step.start))));
        if (x >= chart.min.x && x >= last_line + font * 0.3F) {  // more lines would merge into a grey area
            chart.draw->AddRectFilled({x, chart.min.y}, {x + 1, chart.max.y}, faded(ink, 0.45F));
            last_line = x;
        }
        const auto end = static_cast<float>(chart.x.pixel(static_cast<double>(std::min(step.end, seen.to))));
        const float at = std::max(x, chart.min.x) + gap;
        if (at + font * 3 > end) continue;  // no room even for the shortest name
        const std::string label = fmt::format("step {}", step.number);
        const float width = ImGui::CalcTextSize(label.c_str()).x;
        if (at + width > end) continue;  // the name is inside its step or omitted
        chart.draw->AddRectFilled({at - gap * 0.5F, y}, {at + width + gap * 0.5F, y + font * 1.1F},
                                  faded(ImGui::GetColorU32(ImGuiCol_PopupBg), 0.75F), gap * 0.5F);
        chart.draw->AddText({at, y}, theme::text(), label.c_str());
    }
}

// A step line: the extremes of the columns, joined.
void draw_line(const Chart& chart, const std::vector<LineColumn>& columns, const MemoryLine& line) {
    if (columns.empty()) return;
    const float step = chart.width() / static_cast<float>(columns.size());
    const float thick = line.thickness;
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
                                  line.color);
        i = next;
    }
}

void draw_tip(const MemoryTimeChart& input, std::int64_t time) {
    begin_tip(format_duration(static_cast<double>(time)));
    if (input.stack != nullptr) memory_tip_rows(point_at(input.stack->points, time));
    for (const MemoryLine& line : input.lines)
        tip_row(line.label, format_mb(line_at(*line.line, time - line.shift)), line.color);
    end_tip();
}

}  // namespace

CategoryColors memory_category_colors() {
    CategoryColors colors{};
    for (std::size_t c = 0; c < colors.size(); ++c)
        colors[c] = category_color(static_cast<traces::MemoryCategory>(c));
    return colors;
}

void memory_tip_rows(const traces::MemoryPoint* point) {
    if (point != nullptr) tip_row("Last change", format_duration(static_cast<double>(point->time)));
    tip_row("Live", format_mb(point != nullptr ? point->total : 0));
    for (std::size_t c = traces::kMemoryCategories; point != nullptr && c-- > 0;) {
        if (point->bytes[c] == 0) continue;
        tip_row(spaced(traces::kMemoryCategoryNames[c]), format_mb(point->bytes[c]),
                category_color(static_cast<traces::MemoryCategory>(c)));
    }
}

void draw_memory_over_time(const char* item, const MemoryTimeChart& input, ImVec2 size) {
    OpenTrace& entry = *input.entry;
    const TimeRange seen = entry.visible;
    const int columns = column_count(size.x);
    std::vector<FoldedColumn> stack;
    if (input.stack != nullptr) stack = fold_curve(*input.stack, seen.from, seen.to, columns);
    std::int64_t most = 1;
    for (const FoldedColumn& column : stack) most = std::max(most, column.highest);
    std::vector<std::vector<LineColumn>> lines;
    for (const MemoryLine& line : input.lines) {
        lines.push_back(fold_line(*line.line, seen.from, seen.to, columns, line.shift));
        for (const LineColumn& column : lines.back()) most = std::max(most, column.highest);
    }
    const ChartAxes axes{static_cast<double>(seen.from), static_cast<double>(seen.to),
                         axis_top(static_cast<double>(most)) * 1.04};
    const Chart chart = begin_chart("over time", size, axes);
    time_gestures(entry, chart);
    items::place(item, chart.min, chart.max,
                 fmt::format("{} to {}", format_duration(static_cast<double>(seen.from)),
                             format_duration(static_cast<double>(seen.to))));
    stacked_area(chart, stack, memory_category_colors());
    draw_steps(chart, input);
    for (std::size_t i = 0; i < lines.size(); ++i) draw_line(chart, lines[i], input.lines[i]);
    if (input.peak && input.peak->bytes > 0) {
        level_line(chart, static_cast<double>(input.peak->bytes), faded(theme::peak(), 0.5F), "");
        marker_line(chart, static_cast<double>(input.peak->time), theme::peak(),
                    "peak " + format_mb(input.peak->bytes));
    }
    paint_limit(entry, chart);
    paint_cursor(entry, chart);
    crosshair(chart);
    if (chart.hovered && !ImGui::IsMouseDown(0))
        draw_tip(input, static_cast<std::int64_t>(chart.x.value(ImGui::GetIO().MousePos.x)));
}

}  // namespace shardscope::viewer
