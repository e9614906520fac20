// See memory_chart.h.
#include "viewer/panels/memory_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui.h>

#include "traces/store/trace.h"
#include "viewer/app/theme.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer {
namespace {

using traces::MemoryPoint;

constexpr std::size_t kPointsAroundPeak = 200;  // on each side, where there are no steps

CategoryColors category_colors() {
    CategoryColors colors{};
    for (std::size_t c = 0; c < colors.size(); ++c)
        colors[c] = category_color(static_cast<traces::MemoryCategory>(c));
    return colors;
}

// Two pixels a column halve the rectangles of the worst case and look the same.
int column_count(const Chart& chart) {
    return std::max(1, static_cast<int>(chart.width() / 2));
}

void draw_steps(const Chart& chart, const MemoryChart::Input& input) {
    const ImU32 ink = ImGui::GetColorU32(ImGuiCol_TextDisabled);
    const float font = ImGui::GetFontSize(), gap = font * 0.3F;
    const float y = chart.max.y - font - gap;
    float last_line = -1e9F;
    for (const traces::Step& step : input.trace->steps) {
        if (step.rank != input.rank_index || step.start >= input.to || step.end <= input.from) continue;
        const auto x = std::floor(static_cast<float>(chart.x.pixel(static_cast<double>(step.start))));
        if (x >= chart.min.x && x >= last_line + font * 0.3F) {  // more lines than this would be a grey wall
            chart.draw->AddRectFilled({x, chart.min.y}, {x + 1, chart.max.y}, faded(ink, 0.45F));
            last_line = x;
        }
        const std::string label = fmt::format("step {}", step.number);
        const float width = ImGui::CalcTextSize(label.c_str()).x;
        const float at = std::max(x, chart.min.x) + gap;
        const auto end = static_cast<float>(chart.x.pixel(static_cast<double>(std::min(step.end, input.to))));
        if (at + width > end) continue;  // the name stands inside its step or not at all
        chart.draw->AddRectFilled({at - gap * 0.5F, y}, {at + width + gap * 0.5F, y + font * 1.1F},
                                  faded(ImGui::GetColorU32(ImGuiCol_PopupBg), 0.75F), gap * 0.5F);
        chart.draw->AddText({at, y}, ImGui::GetColorU32(ImGuiCol_Text), label.c_str());
    }
}

void draw_tip(std::string_view title, const MemoryPoint* point) {
    begin_tip(title);
    if (point != nullptr) tip_row("Last change", format_duration(static_cast<double>(point->time)));
    tip_row("Allocated", format_mb(point != nullptr ? point->total : 0));
    for (std::size_t c = traces::kMemoryCategories;
         point != nullptr && c-- > 0;) {  // in the order of the stack
        if (point->bytes[c] == 0) continue;
        tip_row(spaced(traces::kMemoryCategoryNames[c]), format_mb(point->bytes[c]),
                category_color(static_cast<traces::MemoryCategory>(c)));
    }
    end_tip();
}

void draw_peak(const Chart& chart, double x, std::int64_t bytes) {
    level_line(chart, static_cast<double>(bytes), faded(theme::peak(), 0.5F), "");
    marker_line(chart, x, theme::peak(), "peak " + format_mb(bytes));
}

}  // namespace

void MemoryChart::draw_over_time(const Input& input, ImVec2 size) {
    ImGui::PushID("over time");
    const traces::RankMemory& memory = *input.memory;
    // What is reserved may be far above; then it is said in words only, so that the curve keeps its height.
    const bool reserved = memory.reserved_bytes > 0 && memory.reserved_bytes < 2 * memory.peak_bytes;
    const auto top = static_cast<double>(reserved ? std::max(memory.reserved_bytes, memory.peak_bytes)
                                                  : memory.peak_bytes);
    const ChartAxes axes{static_cast<double>(input.from), static_cast<double>(input.to),
                         axis_top(top) * 1.04};
    const Chart chart = begin_chart("chart", size, axes);
    const Shown wanted{input.curve.data(), input.curve.size(), input.from, input.to, column_count(chart)};
    if (wanted != shown_) {
        columns_ = fold_curve(input.curve, input.from, input.to, wanted.columns);
        shown_ = wanted;
    }
    stacked_area(chart, columns_, category_colors());
    draw_steps(chart, input);
    if (reserved) {
        level_line(chart, static_cast<double>(memory.reserved_bytes), theme::text_dim(),
                   "reserved " + format_mb(memory.reserved_bytes));
    }
    draw_peak(chart, static_cast<double>(memory.peak_time_ns), memory.peak_bytes);
    crosshair(chart);
    if (chart.hovered) {
        const auto time = static_cast<std::int64_t>(chart.x.value(ImGui::GetIO().MousePos.x));
        draw_tip(format_duration(static_cast<double>(time)), point_at(input.curve, time));
    }
    ImGui::PopID();
}

void MemoryChart::draw_in_order(const Input& input, ImVec2 size) {
    if (input.curve.empty()) return;
    ImGui::PushID("in order");
    const auto count = static_cast<double>(input.curve.size());
    ChartAxes axes{0, count,
                   axis_top(static_cast<double>(std::max(input.top, input.memory->peak_bytes))) * 1.04};
    axes.x_unit = AxisUnit::count;
    const Chart chart = begin_chart("chart", size, axes);
    const Shown wanted{input.curve.data(), input.curve.size(), 0, 0, column_count(chart)};
    if (wanted != shown_) {
        columns_ = fold_by_order(input.curve, wanted.columns);
        shown_ = wanted;
    }
    stacked_area(chart, columns_, category_colors());
    const auto peak = std::find_if(input.curve.begin(), input.curve.end(), [&](const MemoryPoint& p) {
        return p.time == input.memory->peak_time_ns && p.total == input.memory->peak_bytes;
    });
    if (peak != input.curve.end())
        draw_peak(chart, static_cast<double>(peak - input.curve.begin()) + 0.5, peak->total);
    crosshair(chart);
    if (chart.hovered) {
        const double at = std::clamp(chart.x.value(ImGui::GetIO().MousePos.x), 0.0, count - 1);
        const auto index = static_cast<std::size_t>(at);
        draw_tip(fmt::format("Allocation or free {}", format_count(static_cast<std::int64_t>(index))),
                 &input.curve[index]);
    }
    ImGui::PopID();
}

CurvePart part_of_peak(const traces::Trace& trace, int rank_index, std::span<const MemoryPoint> curve,
                       std::int64_t peak_time_ns) {
    const auto index_of = [&](std::int64_t time) {
        return static_cast<std::size_t>(
            std::lower_bound(curve.begin(), curve.end(), time,
                             [](const MemoryPoint& p, std::int64_t t) { return p.time < t; }) -
            curve.begin());
    };
    for (const traces::Step& step : trace.steps) {
        if (step.rank != rank_index || peak_time_ns < step.start || peak_time_ns >= step.end) continue;
        const std::size_t first = index_of(step.start);
        return {first, index_of(step.end) - first, step.number};
    }
    const std::size_t peak = index_of(peak_time_ns);
    const std::size_t first = peak > kPointsAroundPeak ? peak - kPointsAroundPeak : 0;
    return {first, std::min(curve.size(), peak + kPointsAroundPeak) - first, -1};
}

}  // namespace shardscope::viewer
