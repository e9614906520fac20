// See step_bars.h.
#include "viewer/widgets/step_bars.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer {
namespace {

void draw_tip(std::string_view what, const TimeBar& bar) {
    begin_tip(fmt::format("{} {}", what, bar.number));
    tip_row("Total", format_duration(bar.total()));
    for (std::size_t c = 0; c < bar.ns.size(); ++c) {
        if (bar.ns[c] == 0) continue;
        tip_row(
            traces::kTimeCategoryNames[c],
            fmt::format("{}   {}", format_duration(bar.ns[c]), format_percent(100 * bar.ns[c] / bar.total())),
            time_category_color(static_cast<traces::TimeCategory>(c)));
    }
    end_tip();
}

void draw_bar(const Chart& chart, const TimeBar& bar, float x0, float x1) {
    double below = 0;
    for (std::size_t c = 0; c < bar.ns.size(); ++c) {
        if (bar.ns[c] == 0) continue;
        const auto bottom = static_cast<float>(chart.y.pixel(below));
        below += bar.ns[c];
        const auto top = static_cast<float>(chart.y.pixel(below));
        chart.draw->AddRectFilled({x0, top}, {x1, bottom},
                                  time_category_color(static_cast<traces::TimeCategory>(c)));
    }
}

// `room`: distance to the next number. The first number has the name of what is counted, if it fits.
void draw_number(const Chart& chart, const TimeBar& bar, float center, float room, std::string_view what) {
    std::string label = format_count(bar.number);
    if (!what.empty()) {
        const std::string named = fmt::format("{} {}", what, label);
        if (ImGui::CalcTextSize(named.c_str()).x < room) label = named;
    }
    const float x = center - ImGui::CalcTextSize(label.c_str()).x / 2;
    chart.draw->AddText({std::floor(x), chart.max.y + 2}, theme::text_dim(), label.c_str());
}

// Every n-th bar has a number, n being a round number, so that the longest number fits.
std::int64_t bars_per_number(const std::vector<TimeBar>& bars, float bar_width) {
    if (bars.empty()) return 1;
    const float widest = ImGui::CalcTextSize(format_count(bars.back().number).c_str()).x;
    const float wanted = (widest + ImGui::GetFontSize() * 0.5F) / std::max(bar_width, 1.0F);
    return std::max<std::int64_t>(1, std::llround(nice_step(std::max(wanted, 1.0F))));
}

}  // namespace

double TimeBar::total() const {
    return std::accumulate(ns.begin(), ns.end(), 0.0);
}

std::vector<TimeBar> bars_of_steps(const traces::RankSummary& rank) {
    std::vector<TimeBar> bars;
    bars.reserve(rank.steps.size());
    for (const traces::StepSummary& step : rank.steps) {
        TimeBar& bar = bars.emplace_back();
        bar.number = step.number;
        std::copy(step.ns.begin(), step.ns.end(), bar.ns.begin());
    }
    return bars;
}

std::vector<TimeBar> bars_of_ranks(const traces::ExecutionSummary& summary) {
    std::vector<TimeBar> bars;
    bars.reserve(summary.ranks.size());
    for (const traces::RankSummary& rank : summary.ranks) {
        TimeBar& bar = bars.emplace_back();
        bar.number = rank.rank;
        std::transform(rank.average_us.begin(), rank.average_us.end(), bar.ns.begin(),
                       [](double us) { return us * 1e3; });
    }
    return bars;
}

int draw_time_bars(std::string_view item, std::string_view what, const std::vector<TimeBar>& bars,
                   float height) {
    const float font = ImGui::GetFontSize();
    const auto count = static_cast<float>(bars.size());
    const float wanted = count * font * 0.7F + font * 6;
    int clicked = -1;
    ImGui::BeginChild("bars", {0, height}, false, ImGuiWindowFlags_HorizontalScrollbar);
    const float available = ImGui::GetContentRegionAvail().x;
    const bool scrolls = wanted > available;
    double longest = 0;
    for (const TimeBar& bar : bars) longest = std::max(longest, bar.total());

    ChartAxes axes{0, std::max(1.0F, count), axis_top(longest)};
    axes.y_unit = AxisUnit::nanoseconds;
    axes.x_ticks = false;
    const float bottom = font * 1.5F + (scrolls ? ImGui::GetStyle().ScrollbarSize : 0.0F);
    const Chart chart =
        begin_chart("chart", {std::max(wanted, available), ImGui::GetContentRegionAvail().y - bottom}, axes);
    const float step = chart.width() / std::max(1.0F, count);
    const float width = std::min(step * 0.8F, font * 5);
    const float left = ImGui::GetWindowPos().x, right = left + ImGui::GetWindowWidth();
    const std::int64_t stride = bars_per_number(bars, step);
    bool first = true;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const float x = chart.min.x + step * static_cast<float>(i);
        if (x > right || x + step < left) continue;
        const float from = x + (step - width) / 2;
        draw_bar(chart, bars[i], from, from + width);
        if (items::kept())
            items::place(fmt::format("{}.{}", item, bars[i].number), {from, chart.min.y},
                         {from + width, chart.max.y}, format_duration(bars[i].total()));
        if (bars[i].number % stride == 0) {
            draw_number(chart, bars[i], x + step / 2, step * static_cast<float>(stride),
                        first ? what : std::string_view());
            first = false;
        }
        const float mouse = ImGui::GetIO().MousePos.x;
        if (chart.hovered && mouse >= x && mouse < x + step) {
            draw_tip(what, bars[i]);
            if (ImGui::IsMouseClicked(0)) clicked = static_cast<int>(i);
        }
    }
    ImGui::EndChild();
    return clicked;
}

}  // namespace shardscope::viewer
