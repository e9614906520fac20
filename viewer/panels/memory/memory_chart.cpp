// See memory_chart.h.
#include "viewer/panels/memory/memory_chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/columns/trace.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/rank_steps.h"
#include "viewer/model/session.h"
#include "viewer/model/time_view.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

// --- The mouse gestures of a chart over time, the same as on the timeline: the wheel zooms about the mouse,
// a drag moves the visible range, Shift and a drag limit all panels to that time, a click puts the cursor
// there, a double-click shows the whole trace.

std::int64_t time_at(const draw::Chart& chart, float x) {
    return static_cast<std::int64_t>(std::llround(chart.x.value(std::clamp(x, chart.min.x, chart.max.x))));
}

model::TimeSpan whole(const model::OpenTrace& entry) {
    return {entry.trace->first_ns, std::max(entry.trace->last_ns, entry.trace->first_ns + 1)};
}

void show(model::OpenTrace& entry, model::TimeSpan span) {
    entry.visible = {span.from, span.to};
}

model::TimeRange dragged(const draw::Chart& chart) {
    const std::int64_t a = time_at(chart, ImGui::GetIO().MouseClickedPos[0].x);
    const std::int64_t b = time_at(chart, ImGui::GetIO().MousePos.x);
    return {std::min(a, b), std::max(a, b)};
}

// To be called right after begin_chart() with the entry's visible range as x.
void time_gestures(model::OpenTrace& entry, const draw::Chart& chart) {
    if (entry.trace == nullptr) return;
    const ImGuiIO& io = ImGui::GetIO();
    const model::TimeSpan visible{entry.visible.from, entry.visible.to};
    if (chart.hovered && io.MouseWheel != 0 && !io.KeyShift) {
        const double factor = std::pow(model::kWheelStep, io.MouseWheel);
        show(entry, zoomed(visible, whole(entry), time_at(chart, io.MousePos.x), factor));
    }
    const bool moved = io.MouseDragMaxDistanceSqr[0] > io.MouseDragThreshold * io.MouseDragThreshold;
    if (ImGui::IsItemActive() && moved) {
        if (io.KeyShift) {
            const model::TimeRange range = dragged(chart);
            chart.draw->AddRectFilled(
                {static_cast<float>(chart.x.pixel(static_cast<double>(range.from))), chart.min.y},
                {static_cast<float>(chart.x.pixel(static_cast<double>(range.to))), chart.max.y},
                draw::faded(theme::accent(), 0.3F));
        } else if (chart.width() > 0) {
            const double ns = static_cast<double>(visible.to - visible.from) / chart.width();
            show(entry, panned(visible, whole(entry), std::llround(-io.MouseDelta.x * ns)));
        }
    }
    if (ImGui::IsItemDeactivated() && io.MouseReleased[0]) {
        if (!moved) {
            entry.cursor = time_at(chart, io.MousePos.x);
        } else if (io.KeyShift && dragged(chart).length() > 0) {
            entry.limit = dragged(chart);
        }
    }
    if (chart.hovered && ImGui::IsMouseDoubleClicked(0)) show(entry, whole(entry));
}

// Painted over such a chart: dims the time outside the limit range, and draws the cursor as a line.
void paint_limit(const model::OpenTrace& entry, const draw::Chart& chart) {
    if (!entry.limit) return;
    const auto x = [&](std::int64_t time) {
        return std::clamp(static_cast<float>(chart.x.pixel(static_cast<double>(time))), chart.min.x,
                          chart.max.x);
    };
    const ImU32 veil = draw::faded(theme::ground(), 0.72F);
    const float from = x(entry.limit->from), to = x(entry.limit->to);
    if (from > chart.min.x) chart.draw->AddRectFilled(chart.min, {from, chart.max.y}, veil);
    if (to < chart.max.x) chart.draw->AddRectFilled({to, chart.min.y}, chart.max, veil);
    for (const float edge : {from, to}) {
        if (edge > chart.min.x && edge < chart.max.x)
            chart.draw->AddRectFilled({edge, chart.min.y}, {edge + 1, chart.max.y}, theme::accent());
    }
}

void paint_cursor(const model::OpenTrace& entry, const draw::Chart& chart) {
    if (!entry.cursor) return;
    const float x = std::floor(static_cast<float>(chart.x.pixel(static_cast<double>(*entry.cursor))));
    if (x < chart.min.x || x >= chart.max.x) return;
    chart.draw->AddRectFilled({x, chart.min.y}, {x + 1.5F, chart.max.y}, theme::accent());
}

using traces::analysis::MemoryPoint;

constexpr std::size_t kPointsAroundPeak = 200;  // on each side, if there are no steps

// Columns two pixels wide halve the rectangles of the worst case and look the same.
int column_count(float width) {
    return std::max(1, static_cast<int>(width / 2));
}

void draw_peak(const draw::Chart& chart, double x, std::int64_t bytes) {
    level_line(chart, static_cast<double>(bytes), draw::faded(theme::peak(), 0.5F), "");
    marker_line(chart, x, theme::peak(), "peak " + draw::format_mb(bytes));
}

// A line at the last point at or before `time`; none if that point is not visible.
void draw_cursor(const draw::Chart& chart, std::span<const MemoryPoint> curve, std::int64_t time) {
    const MemoryPoint* point = draw::point_at(curve, time);
    if (point == nullptr || (point == &curve.back() && time > point->time)) return;
    const auto x =
        std::floor(static_cast<float>(chart.x.pixel(static_cast<double>(point - curve.data()) + 0.5)));
    chart.draw->AddRectFilled({x, chart.min.y}, {x + 1.5F, chart.max.y}, theme::accent());
}

}  // namespace

std::optional<std::int64_t> MemoryChart::draw_in_order(const Input& input, ImVec2 size) {
    if (input.curve.empty()) return {};
    ImGui::PushID("in order");
    const auto count = static_cast<double>(input.curve.size());
    draw::ChartAxes axes{
        0, count, draw::axis_top(static_cast<double>(std::max(input.top, input.memory->peak_bytes))) * 1.04};
    axes.x_unit = draw::AxisUnit::count;
    const draw::Chart chart = begin_chart("chart", size, axes);
    const Shown wanted{input.curve.data(), input.curve.size(), column_count(chart.width())};
    if (wanted != shown_) {
        columns_ = draw::fold_by_order(input.curve, wanted.columns);
        shown_ = wanted;
    }
    stacked_area(chart, columns_, memory_category_colors());
    // The last point at or before the peak's time: in a memory snapshot a peak lasts a while.
    const MemoryPoint* peak = draw::point_at(input.curve, input.memory->peak_time_ns);
    while (peak != nullptr && peak != input.curve.data() && peak->total != input.memory->peak_bytes &&
           (peak - 1)->time == peak->time)
        --peak;
    if (peak != nullptr && peak->total == input.memory->peak_bytes)
        draw_peak(chart, static_cast<double>(peak - input.curve.data()) + 0.5, peak->total);
    if (input.cursor) draw_cursor(chart, input.curve, *input.cursor);
    crosshair(chart);
    std::optional<std::int64_t> clicked;
    if (chart.hovered) {
        const double at = std::clamp(chart.x.value(ImGui::GetIO().MousePos.x), 0.0, count - 1);
        const auto index = static_cast<std::size_t>(at);
        draw::begin_tip(
            fmt::format("Allocation or free {}", draw::format_count(static_cast<std::int64_t>(index))));
        memory_tip_rows(&input.curve[index]);
        draw::end_tip();
        if (ImGui::IsMouseClicked(0)) clicked = input.curve[index].time;
    }
    ImGui::PopID();
    return clicked;
}

CurvePart part_of_peak(const traces::store::Trace& trace, traces::store::RankIndex rank,
                       std::span<const MemoryPoint> curve, std::int64_t peak_time_ns) {
    const auto index_of = [&](std::int64_t time) {
        return static_cast<std::size_t>(
            std::lower_bound(curve.begin(), curve.end(), time,
                             [](const MemoryPoint& p, std::int64_t t) { return p.time < t; }) -
            curve.begin());
    };
    if (const traces::store::Step* step = model::step_at(trace, rank, peak_time_ns)) {
        const std::size_t first = index_of(step->start);
        return {first, index_of(step->end) - first, step->number};
    }
    const std::size_t peak = index_of(peak_time_ns);
    const std::size_t first = peak > kPointsAroundPeak ? peak - kPointsAroundPeak : 0;
    return {first, std::min(curve.size(), peak + kPointsAroundPeak) - first, -1};
}

namespace {

void draw_steps(const draw::Chart& chart, const MemoryTimeChart& input) {
    const ImU32 ink = theme::text_dim();
    const float font = ImGui::GetFontSize(), gap = font * 0.3F;
    const float y = chart.max.y - font - gap;
    const model::TimeRange& seen = input.entry->visible;
    float last_line = -1e9F;
    for (const traces::store::Step& step : input.entry->trace->steps) {
        if (step.rank != input.rank_index || step.start >= seen.to || step.end <= seen.from) continue;
        const auto x = std::floor(static_cast<float>(chart.x.pixel(static_cast<double>(step.start))));
        if (x >= chart.min.x && x >= last_line + font * 0.3F) {  // more lines would merge into a grey area
            chart.draw->AddRectFilled({x, chart.min.y}, {x + 1, chart.max.y}, draw::faded(ink, 0.45F));
            last_line = x;
        }
        const auto end = static_cast<float>(chart.x.pixel(static_cast<double>(std::min(step.end, seen.to))));
        const float at = std::max(x, chart.min.x) + gap;
        if (at + font * 3 > end) continue;  // no room even for the shortest name
        const std::string label = fmt::format("step {}", step.number);
        const float width = ImGui::CalcTextSize(label.c_str()).x;
        if (at + width > end) continue;  // the name is inside its step or omitted
        chart.draw->AddRectFilled({at - gap * 0.5F, y}, {at + width + gap * 0.5F, y + font * 1.1F},
                                  draw::faded(ImGui::GetColorU32(ImGuiCol_PopupBg), 0.75F), gap * 0.5F);
        chart.draw->AddText({at, y}, theme::text(), label.c_str());
    }
}

void draw_tip(const MemoryTimeChart& input, std::int64_t time) {
    draw::begin_tip(draw::format_duration(static_cast<double>(time)));
    if (input.stack != nullptr) memory_tip_rows(draw::point_at(input.stack->points, time));
    for (const MemoryLine& line : input.lines)
        draw::tip_row(line.label, draw::format_mb(line_at(*line.line, time - line.shift)), line.color);
    draw::end_tip();
}

}  // namespace

draw::CategoryColors memory_category_colors() {
    draw::CategoryColors colors{};
    for (std::size_t c = 0; c < colors.size(); ++c)
        colors[c] = theme::category_color(static_cast<traces::schema::MemoryCategory>(c));
    return colors;
}

void memory_tip_rows(const traces::analysis::MemoryPoint* point) {
    if (point != nullptr)
        draw::tip_row("Last change", draw::format_duration(static_cast<double>(point->time)));
    draw::tip_row("Live", draw::format_mb(point != nullptr ? point->total : 0));
    for (std::size_t c = traces::schema::kMemoryCategories; point != nullptr && c-- > 0;) {
        if (point->bytes[c] == 0) continue;
        draw::tip_row(draw::spaced(traces::schema::kMemoryCategoryNames[c]), draw::format_mb(point->bytes[c]),
                      theme::category_color(static_cast<traces::schema::MemoryCategory>(c)));
    }
}

void draw_memory_over_time(const char* item, const MemoryTimeChart& input, ImVec2 size) {
    model::OpenTrace& entry = *input.entry;
    const model::TimeRange seen = entry.visible;
    const int columns = column_count(input.axis ? input.axis->right - input.axis->left : size.x);
    std::vector<draw::FoldedColumn> stack;
    if (input.stack != nullptr) stack = fold_curve(*input.stack, seen.from, seen.to, columns);
    std::int64_t most = 1;
    for (const draw::FoldedColumn& column : stack) most = std::max(most, column.highest);
    std::vector<std::vector<draw::LineColumn>> lines;
    for (const MemoryLine& line : input.lines) {
        lines.push_back(fold_line(*line.line, seen.from, seen.to, columns, line.shift));
        for (const draw::LineColumn& column : lines.back()) most = std::max(most, column.highest);
    }
    draw::ChartAxes axes{static_cast<double>(seen.from), static_cast<double>(seen.to),
                         draw::axis_top(static_cast<double>(most)) * 1.04};
    if (input.axis) axes.inside = draw::ChartInside{input.axis->left, input.axis->right};
    const draw::Chart chart = begin_chart("over time", size, axes);
    time_gestures(entry, chart);
    draw::items::place(item, chart.min, chart.max,
                       fmt::format("{} to {}", draw::format_duration(static_cast<double>(seen.from)),
                                   draw::format_duration(static_cast<double>(seen.to))));
    stacked_area(chart, stack, memory_category_colors());
    for (std::size_t i = 0; i < lines.size(); ++i)
        stepped_line(chart, lines[i], input.lines[i].color, input.lines[i].thickness);
    draw_steps(chart, input);
    if (input.peak && input.peak->bytes > 0)
        draw_peak(chart, static_cast<double>(input.peak->time), input.peak->bytes);
    paint_limit(entry, chart);
    paint_cursor(entry, chart);
    crosshair(chart);
    if (chart.hovered && !ImGui::IsMouseDown(0))
        draw_tip(input, static_cast<std::int64_t>(chart.x.value(ImGui::GetIO().MousePos.x)));
}

}  // namespace shardscope::viewer::panels
