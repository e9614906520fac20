// See samples_strip.h.
#include "viewer/panels/samples/samples_strip.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

std::int64_t time_at(const draw::LinearScale& x, float pixel) {
    return std::llround(std::clamp(x.value(static_cast<double>(pixel)), x.low, x.high));
}

// While a drag goes on, what it covers; sets the filter at its end.
void take_drag(model::OpenTrace& entry, const draw::LinearScale& x, ImVec2 min, ImVec2 max) {
    const ImGuiIO& io = ImGui::GetIO();
    const bool moved = io.MouseDragMaxDistanceSqr[0] > io.MouseDragThreshold * io.MouseDragThreshold;
    const std::int64_t a = time_at(x, io.MouseClickedPos[0].x), b = time_at(x, io.MousePos.x);
    const model::TimeRange range{std::min(a, b), std::max(a, b)};
    if (ImGui::IsItemActive() && moved) {
        const float from = std::clamp(io.MouseClickedPos[0].x, min.x, max.x);
        const float to = std::clamp(io.MousePos.x, min.x, max.x);
        ImGui::GetWindowDrawList()->AddRectFilled({std::min(from, to), min.y}, {std::max(from, to), max.y},
                                                  draw::faded(theme::text(), 0.2F));
    }
    if (!ImGui::IsItemDeactivated() || !io.MouseReleased[0]) return;
    if (!moved) entry.cursor = b;
    if (moved && range.length() > 0) entry.limit = range;
}

void draw_veil(const model::TimeRange& limit, const draw::LinearScale& x, ImVec2 min, ImVec2 max) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const auto place = [&](std::int64_t time) {
        return std::clamp(static_cast<float>(x.pixel(static_cast<double>(time))), min.x, max.x);
    };
    const ImU32 veil = draw::faded(theme::ground(), 0.72F);
    const float from = place(limit.from), to = place(limit.to);
    if (from > min.x) draw->AddRectFilled(min, {from, max.y}, veil);
    if (to < max.x) draw->AddRectFilled({to, min.y}, max, veil);
}

void draw_strip_tip(const ShownSamples& samples, std::size_t part) {
    const WeightsOverTime& over = samples.over_time;
    const double from = static_cast<double>(over.from) + over.part_ns() * static_cast<double>(part);
    draw::begin_tip(
        fmt::format("{} to {}", draw::format_duration(from), draw::format_duration(from + over.part_ns())));
    draw::tip_row("Used", rate_text(samples.report, over.parts[part], over.part_ns()));
    draw::tip_row("Highest", rate_text(samples.report, over.most, over.part_ns()));
    draw::tip_row("Drag", "filters all panels by that time");
    draw::end_tip();
}

}  // namespace

void draw_samples_strip(model::OpenTrace& entry, const ShownSamples& samples, float width) {
    const WeightsOverTime& over = samples.over_time;
    const float font = ImGui::GetFontSize();
    const ImVec2 min = ImGui::GetCursorScreenPos();
    const ImVec2 max{min.x + std::max(1.0F, width), min.y + std::round(font * 2.4F)};
    draw::place_button("strip", {max.x - min.x, max.y - min.y});
    draw::items::mark("samples.strip", rate_text(samples.report, over.most, over.part_ns()));
    const bool hovered = ImGui::IsItemHovered();
    const draw::LinearScale x{static_cast<double>(over.from), static_cast<double>(over.to),
                              static_cast<double>(min.x), static_cast<double>(max.x)};
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(min, max, theme::raised());
    const float step = (max.x - min.x) / static_cast<float>(over.parts.size());
    for (std::size_t i = 0; i < over.parts.size(); ++i) {
        if (over.parts[i] == 0) continue;
        const float high =
            (max.y - min.y) * static_cast<float>(over.parts[i]) / static_cast<float>(over.most);
        const float left = min.x + step * static_cast<float>(i);
        draw->AddRectFilled({left, max.y - std::max(1.0F, high)}, {left + step, max.y}, theme::accent());
    }
    const std::string most = "up to " + rate_text(samples.report, over.most, over.part_ns());
    draw->AddRectFilled(min, {min.x + draw::width_of(most) + font * 0.5F, min.y + font * 1.1F},
                        draw::faded(theme::ground(), 0.6F));
    draw->AddText({min.x + font * 0.25F, min.y}, theme::text(), most.c_str());
    if (entry.limit) draw_veil(*entry.limit, x, min, max);
    if (entry.cursor && *entry.cursor >= over.from && *entry.cursor <= over.to) {
        const auto at = std::floor(static_cast<float>(x.pixel(static_cast<double>(*entry.cursor))));
        draw->AddRectFilled({at, min.y}, {at + 1, max.y}, theme::text());
    }
    take_drag(entry, x, min, max);
    if (!hovered) return;
    const double part = (static_cast<double>(ImGui::GetIO().MousePos.x - min.x)) / static_cast<double>(step);
    draw_strip_tip(
        samples, static_cast<std::size_t>(std::clamp(part, 0.0, static_cast<double>(over.parts.size() - 1))));
}

}  // namespace shardscope::viewer::panels
