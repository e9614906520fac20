// See step_bars.h.
#include "viewer/panels/step_bars.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/theme.h"
#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer {
namespace {

using traces::StepSummary;

double window_ns(const StepSummary& step) {
    return static_cast<double>(step.window_end - step.window_start);
}

void draw_tip(const StepSummary& step) {
    begin_tip(fmt::format("Step {}", step.number));
    tip_row("Total", format_duration(window_ns(step)));
    for (std::size_t c = 0; c < step.ns.size(); ++c) {
        if (step.ns[c] == 0) continue;
        const auto ns = static_cast<double>(step.ns[c]);
        tip_row(traces::kTimeCategoryNames[c],
                fmt::format("{}   {}", format_duration(ns), format_percent(100 * ns / window_ns(step))),
                time_category_color(static_cast<traces::TimeCategory>(c)));
    }
    end_tip();
}

void draw_bar(const Chart& chart, const StepSummary& step, float x0, float x1) {
    double below = 0;
    for (std::size_t c = 0; c < step.ns.size(); ++c) {
        if (step.ns[c] == 0) continue;
        const auto bottom = static_cast<float>(chart.y.pixel(below));
        below += static_cast<double>(step.ns[c]);
        const auto top = static_cast<float>(chart.y.pixel(below));
        chart.draw->AddRectFilled({x0, top}, {x1, bottom},
                                  time_category_color(static_cast<traces::TimeCategory>(c)));
    }
}

void draw_number(const Chart& chart, const StepSummary& step, float center) {
    const std::string label = format_count(step.number);
    const float x = center - ImGui::CalcTextSize(label.c_str()).x / 2;
    chart.draw->AddText({std::floor(x), chart.max.y + 2}, ImGui::GetColorU32(ImGuiCol_TextDisabled),
                        label.c_str());
}

// Every n-th step is numbered, n a round number, so that the longest number finds room.
std::int64_t steps_per_number(const traces::RankSummary& rank, float step_width) {
    if (rank.steps.empty()) return 1;
    const float widest = ImGui::CalcTextSize(format_count(rank.steps.back().number).c_str()).x;
    const float wanted = (widest + ImGui::GetFontSize() * 0.5F) / std::max(step_width, 1.0F);
    return std::max<std::int64_t>(1, std::llround(nice_step(std::max(wanted, 1.0F))));
}

}  // namespace

int draw_step_bars(const traces::RankSummary& rank, float height) {
    const float font = ImGui::GetFontSize();
    const auto count = static_cast<float>(rank.steps.size());
    const float wanted = count * font * 0.7F + font * 6;
    int clicked = -1;
    ImGui::BeginChild("steps", {0, height}, false, ImGuiWindowFlags_HorizontalScrollbar);
    const float available = ImGui::GetContentRegionAvail().x;
    const bool scrolls = wanted > available;
    double longest = 0;
    for (const StepSummary& step : rank.steps) longest = std::max(longest, window_ns(step));

    ChartAxes axes{0, std::max(1.0F, count), axis_top(longest)};
    axes.y_unit = AxisUnit::nanoseconds;
    axes.x_ticks = false;
    const float bottom = font * 1.5F + (scrolls ? ImGui::GetStyle().ScrollbarSize : 0.0F);
    const Chart chart = begin_chart(
        "step chart", {std::max(wanted, available), ImGui::GetContentRegionAvail().y - bottom}, axes);
    const float step_width = chart.width() / std::max(1.0F, count);
    const float bar = std::min(step_width * 0.8F, font * 5);
    const float left = ImGui::GetWindowPos().x, right = left + ImGui::GetWindowWidth();
    const std::int64_t stride = steps_per_number(rank, step_width);
    for (std::size_t i = 0; i < rank.steps.size(); ++i) {
        const float x = chart.min.x + step_width * static_cast<float>(i);
        if (x > right || x + step_width < left) continue;
        const float from = x + (step_width - bar) / 2;
        draw_bar(chart, rank.steps[i], from, from + bar);
        if (rank.steps[i].number % stride == 0) draw_number(chart, rank.steps[i], x + step_width / 2);
        const float mouse = ImGui::GetIO().MousePos.x;
        if (chart.hovered && mouse >= x && mouse < x + step_width) {
            draw_tip(rank.steps[i]);
            if (ImGui::IsMouseClicked(0)) clicked = static_cast<int>(i);
        }
    }
    ImGui::EndChild();
    return clicked;
}

}  // namespace shardscope::viewer
