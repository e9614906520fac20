// See memory_chart.h.
#include "viewer/panels/memory_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui.h>

#include "traces/store/trace.h"
#include "viewer/app/theme.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer {
namespace {

using traces::MemoryPoint;

CategoryColors category_colors() {
    CategoryColors colors{};
    for (std::size_t c = 0; c < colors.size(); ++c)
        colors[c] = category_color(static_cast<traces::MemoryCategory>(c));
    return colors;
}

void draw_steps(const Chart& chart, const MemoryChart::Input& input) {
    const ImU32 ink = ImGui::GetColorU32(ImGuiCol_TextDisabled);
    float last_end = -1e9F;
    for (const traces::Step& step : input.trace->steps) {
        if (step.rank != input.rank_index || step.start >= input.to || step.end <= input.from) continue;
        const auto x = std::floor(static_cast<float>(chart.x.pixel(static_cast<double>(step.start))));
        const std::string label = fmt::format("step {}", step.number);
        const float width = ImGui::CalcTextSize(label.c_str()).x;
        const float gap = ImGui::GetFontSize() * 0.3F;
        if (x >= chart.min.x)
            chart.draw->AddRectFilled({x, chart.min.y}, {x + 1, chart.max.y}, faded(ink, 0.45F));
        const float at = std::max(x, chart.min.x) + gap;
        const auto end = static_cast<float>(chart.x.pixel(static_cast<double>(std::min(step.end, input.to))));
        if (at < last_end || at + width > end) continue;  // the name stands inside its step or not at all
        chart.draw->AddText({at, chart.max.y - ImGui::GetFontSize() - gap}, ImGui::GetColorU32(ImGuiCol_Text),
                            label.c_str());
        last_end = at + width + gap;
    }
}

void draw_tip(const Chart& chart, const MemoryChart::Input& input) {
    const auto time = static_cast<std::int64_t>(chart.x.value(ImGui::GetIO().MousePos.x));
    const MemoryPoint* point = point_at(input.curve, time);
    begin_tip(format_duration(static_cast<double>(time)));
    tip_row("Allocated", format_mb(point ? point->total : 0));
    for (std::size_t c = traces::kMemoryCategories;
         point != nullptr && c-- > 0;) {  // in the order of the stack
        if (point->bytes[c] == 0) continue;
        tip_row(spaced(traces::kMemoryCategoryNames[c]), format_mb(point->bytes[c]),
                category_color(static_cast<traces::MemoryCategory>(c)));
    }
    end_tip();
}

}  // namespace

const std::vector<FoldedColumn>& MemoryChart::folded(const Input& input, int columns) {
    if (curve_ != input.curve.data() || from_ != input.from || to_ != input.to ||
        columns_.size() != static_cast<std::size_t>(columns)) {
        columns_ = fold_curve(input.curve, input.from, input.to, columns);
        curve_ = input.curve.data();
        from_ = input.from;
        to_ = input.to;
    }
    return columns_;
}

void MemoryChart::draw(const Input& input, float height) {
    ImGui::PushID("memory chart");
    const traces::RankMemory& memory = *input.memory;
    const bool reserved = memory.reserved_bytes > 0;
    // What is reserved may be far above; then it is said in words, so that the curve keeps its height.
    const bool reserved_fits = reserved && memory.reserved_bytes < 2 * memory.peak_bytes;
    const auto top = static_cast<double>(reserved_fits ? std::max(memory.reserved_bytes, memory.peak_bytes)
                                                       : memory.peak_bytes);
    ChartAxes axes{static_cast<double>(input.from), static_cast<double>(input.to), axis_top(top) * 1.04};
    const Chart chart = begin_chart("curve", {ImGui::GetContentRegionAvail().x, height}, axes);
    // Two pixels a column keep the worst case at half the rectangles and look the same.
    stacked_area(chart, folded(input, std::max(1, static_cast<int>(chart.width() / 2))), category_colors());
    draw_steps(chart, input);
    if (reserved_fits) {
        level_line(chart, static_cast<double>(memory.reserved_bytes),
                   ImGui::GetColorU32(ImGuiCol_TextDisabled), "reserved " + format_mb(memory.reserved_bytes));
    }
    level_line(chart, static_cast<double>(memory.peak_bytes), faded(ImGui::GetColorU32(ImGuiCol_Text), 0.5F),
               "");
    marker_line(chart, static_cast<double>(memory.peak_time_ns), ImGui::GetColorU32(ImGuiCol_Text),
                "peak " + format_mb(memory.peak_bytes));
    crosshair(chart);
    if (chart.hovered) draw_tip(chart, input);
    ImGui::PopID();
}

}  // namespace shardscope::viewer
