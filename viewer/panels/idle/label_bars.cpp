// See label_bars.h.
#include "viewer/panels/idle/label_bars.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

void draw_bin_labels(const draw::Chart& chart, std::span<const HistogramBin> bins, float step) {
    const float font = ImGui::GetFontSize();
    float free_from = chart.min.x - font;
    for (std::size_t i = 0; i < bins.size(); ++i) {
        const float x = chart.min.x + step * static_cast<float>(i);
        const float wide = draw::width_of(bins[i].from);
        if (x < free_from || x + wide > chart.max.x + font * 0.5F) continue;
        chart.draw->AddText({std::floor(x), chart.max.y + 2}, ImGui::GetColorU32(ImGuiCol_TextDisabled),
                            bins[i].from.c_str());
        free_from = x + wide + font * 0.8F;
    }
}

}  // namespace

LabelBarsHit draw_label_bars(const char* id, std::span<const LabelBar> bars, double full, float height) {
    LabelBarsHit hit;
    const float font = ImGui::GetFontSize(), row = font * 1.6F;
    float label = 0, value = 0;
    for (const LabelBar& bar : bars) {
        label = std::max(label, draw::width_of(bar.label));
        value = std::max(value, draw::width_of(bar.value));
    }
    ImGui::BeginChild(id, {0, height});
    const float width = std::max(font * 3, ImGui::GetContentRegionAvail().x - label - value - font * 2.2F);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(bars.size()), row);
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            const auto at_row = static_cast<std::size_t>(i);
            const LabelBar& bar = bars[at_row];
            const ImVec2 at = ImGui::GetCursorScreenPos();
            ImDrawList* draw = ImGui::GetWindowDrawList();
            const ImU32 ink = bar.chosen ? theme::text() : theme::text_dim();
            const float y = std::floor(at.y + font * 0.22F), left = at.x + label + font * 0.8F;
            if (bar.chosen) {
                draw->AddRectFilled({at.x - font * 0.35F, at.y + font * 0.15F},
                                    {at.x - font * 0.15F, at.y + row - font * 0.15F}, theme::accent());
            }
            draw->AddText({at.x, y}, ink, bar.label.c_str());
            const int segment =
                stacked_bar({left, at.y + font * 0.15F}, {width, font * 1.25F}, bar.segments, full, false);
            draw->AddText({left + width + font * 0.6F + value - draw::width_of(bar.value), y}, ink,
                          bar.value.c_str());
            ImGui::PushID(i);
            if (draw::place_button("bar", {std::max(1.0F, label + width + value + font * 1.4F), row}))
                hit.clicked = at_row;
            if (ImGui::IsItemHovered() && segment >= 0) {
                hit.row = at_row;
                hit.segment = static_cast<std::size_t>(segment);
            }
            draw::items::mark(fmt::format("{}.{}", id, bar.label), bar.value);
            ImGui::PopID();
        }
    }
    ImGui::PopStyleVar();
    ImGui::EndChild();
    return hit;
}

void draw_histogram(const char* id, std::string_view title, std::span<const HistogramBin> bins,
                    draw::AxisUnit unit, ImU32 color, ImVec2 size) {
    const float font = ImGui::GetFontSize();
    ImGui::BeginGroup();
    draw::text_dim(draw::fit_text(std::string(title), size.x));
    if (bins.empty()) {
        draw::text("No launch is known here.");
        ImGui::EndGroup();
        return;
    }
    double most = 0, sum = 0;
    for (const HistogramBin& bin : bins) {
        most = std::max(most, bin.value);
        sum += bin.value;
    }
    draw::ChartAxes axes{0, static_cast<double>(bins.size()), draw::axis_top(most)};
    axes.y_unit = unit;
    axes.x_ticks = false;
    const float labels = font * 1.2F;
    const draw::Chart chart = begin_chart(
        id, {size.x, std::max(font * 3, size.y - ImGui::GetTextLineHeightWithSpacing() - labels)}, axes);
    const float step = chart.width() / static_cast<float>(bins.size());
    for (std::size_t i = 0; i < bins.size(); ++i) {
        const float x = chart.min.x + step * static_cast<float>(i);
        const auto top = static_cast<float>(chart.y.pixel(bins[i].value));
        const float mouse = ImGui::GetIO().MousePos.x;
        const bool hovered = chart.hovered && mouse >= x && mouse < x + step;
        chart.draw->AddRectFilled({x + 1, std::min(top, bins[i].value > 0 ? chart.max.y - 1 : chart.max.y)},
                                  {std::max(x + 2, x + step - 1), chart.max.y},
                                  hovered ? color : draw::faded(color, 0.85F));
        if (!hovered) continue;
        draw::begin_tip(bins[i].title);
        draw::tip_row(unit == draw::AxisUnit::count ? "Launches" : "Time",
                      unit == draw::AxisUnit::count
                          ? draw::format_count(static_cast<std::int64_t>(bins[i].value))
                          : draw::format_duration(bins[i].value),
                      color);
        draw::tip_row("Share", draw::format_percent(sum > 0 ? 100 * bins[i].value / sum : 0));
        draw::end_tip();
    }
    draw_bin_labels(chart, bins, step);
    ImGui::Dummy({1, labels - ImGui::GetStyle().ItemSpacing.y});
    ImGui::EndGroup();
}

}  // namespace shardscope::viewer::panels
