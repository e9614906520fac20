// See memory_chart.h.
#include "viewer/panels/memory/memory_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/columns/trace.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/model/rank_steps.h"
#include "viewer/panels/memory/memory_time_chart.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer {
namespace {

using traces::MemoryPoint;

constexpr std::size_t kPointsAroundPeak = 200;  // on each side, if there are no steps

// Columns two pixels wide halve the rectangles of the worst case and look the same.
int column_count(const Chart& chart) {
    return std::max(1, static_cast<int>(chart.width() / 2));
}

void draw_peak(const Chart& chart, double x, std::int64_t bytes) {
    level_line(chart, static_cast<double>(bytes), faded(theme::peak(), 0.5F), "");
    marker_line(chart, x, theme::peak(), "peak " + format_mb(bytes));
}

// A line at the last point up to then; none if that is outside the visible part.
void draw_cursor(const Chart& chart, std::span<const MemoryPoint> curve, std::int64_t time) {
    const MemoryPoint* point = point_at(curve, time);
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
    ChartAxes axes{0, count,
                   axis_top(static_cast<double>(std::max(input.top, input.memory->peak_bytes))) * 1.04};
    axes.x_unit = AxisUnit::count;
    const Chart chart = begin_chart("chart", size, axes);
    const Shown wanted{input.curve.data(), input.curve.size(), column_count(chart)};
    if (wanted != shown_) {
        columns_ = fold_by_order(input.curve, wanted.columns);
        shown_ = wanted;
    }
    stacked_area(chart, columns_, memory_category_colors());
    // The last state up to then: in a memory snapshot a peak lasts a while.
    const MemoryPoint* peak = point_at(input.curve, input.memory->peak_time_ns);
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
        begin_tip(fmt::format("Allocation or free {}", format_count(static_cast<std::int64_t>(index))));
        memory_tip_rows(&input.curve[index]);
        end_tip();
        if (ImGui::IsMouseClicked(0)) clicked = input.curve[index].time;
    }
    ImGui::PopID();
    return clicked;
}

CurvePart part_of_peak(const traces::Trace& trace, int rank_index, std::span<const MemoryPoint> curve,
                       std::int64_t peak_time_ns) {
    const auto index_of = [&](std::int64_t time) {
        return static_cast<std::size_t>(
            std::lower_bound(curve.begin(), curve.end(), time,
                             [](const MemoryPoint& p, std::int64_t t) { return p.time < t; }) -
            curve.begin());
    };
    if (const traces::Step* step = step_at(trace, rank_index, peak_time_ns)) {
        const std::size_t first = index_of(step->start);
        return {first, index_of(step->end) - first, step->number};
    }
    const std::size_t peak = index_of(peak_time_ns);
    const std::size_t first = peak > kPointsAroundPeak ? peak - kPointsAroundPeak : 0;
    return {first, std::min(curve.size(), peak + kPointsAroundPeak) - first, -1};
}

}  // namespace shardscope::viewer
