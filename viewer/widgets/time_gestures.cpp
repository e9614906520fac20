// See time_gestures.h.
#include "viewer/widgets/time_gestures.h"

#include <algorithm>
#include <cmath>

#include <imgui.h>

#include "viewer/draw/format.h"
#include "viewer/model/time_view.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer {
namespace {

constexpr float kWheelStep = 0.8F;  // factor of the visible time for each notch

std::int64_t time_at(const Chart& chart, float x) {
    return static_cast<std::int64_t>(std::llround(chart.x.value(std::clamp(x, chart.min.x, chart.max.x))));
}

TimeSpan whole(const OpenTrace& entry) {
    return {entry.trace->first_ns, std::max(entry.trace->last_ns, entry.trace->first_ns + 1)};
}

void show(OpenTrace& entry, TimeSpan span) {
    entry.visible = {span.from, span.to};
}

TimeRange dragged(const Chart& chart) {
    const std::int64_t a = time_at(chart, ImGui::GetIO().MouseClickedPos[0].x);
    const std::int64_t b = time_at(chart, ImGui::GetIO().MousePos.x);
    return {std::min(a, b), std::max(a, b)};
}

}  // namespace

void time_gestures(OpenTrace& entry, const Chart& chart) {
    if (entry.trace == nullptr) return;
    const ImGuiIO& io = ImGui::GetIO();
    const TimeSpan visible{entry.visible.from, entry.visible.to};
    if (chart.hovered && io.MouseWheel != 0 && !io.KeyShift) {
        const double factor = std::pow(kWheelStep, io.MouseWheel);
        show(entry, zoomed(visible, whole(entry), time_at(chart, io.MousePos.x), factor));
    }
    const bool moved = io.MouseDragMaxDistanceSqr[0] > io.MouseDragThreshold * io.MouseDragThreshold;
    if (ImGui::IsItemActive() && moved) {
        if (io.KeyShift) {
            const TimeRange range = dragged(chart);
            chart.draw->AddRectFilled(
                {static_cast<float>(chart.x.pixel(static_cast<double>(range.from))), chart.min.y},
                {static_cast<float>(chart.x.pixel(static_cast<double>(range.to))), chart.max.y},
                faded(theme::accent(), 0.3F));
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

void paint_limit(const OpenTrace& entry, const Chart& chart) {
    if (!entry.limit) return;
    const auto x = [&](std::int64_t time) {
        return std::clamp(static_cast<float>(chart.x.pixel(static_cast<double>(time))), chart.min.x,
                          chart.max.x);
    };
    const ImU32 veil = faded(theme::ground(), 0.72F);
    const float from = x(entry.limit->from), to = x(entry.limit->to);
    if (from > chart.min.x) chart.draw->AddRectFilled(chart.min, {from, chart.max.y}, veil);
    if (to < chart.max.x) chart.draw->AddRectFilled({to, chart.min.y}, chart.max, veil);
    for (const float edge : {from, to}) {
        if (edge > chart.min.x && edge < chart.max.x)
            chart.draw->AddRectFilled({edge, chart.min.y}, {edge + 1, chart.max.y}, theme::accent());
    }
}

void paint_cursor(const OpenTrace& entry, const Chart& chart, std::string_view label) {
    if (!entry.cursor) return;
    const float x = std::floor(static_cast<float>(chart.x.pixel(static_cast<double>(*entry.cursor))));
    if (x < chart.min.x || x >= chart.max.x) return;
    chart.draw->AddRectFilled({x, chart.min.y}, {x + 1.5F, chart.max.y}, theme::accent());
    if (label.empty()) return;
    const float gap = ImGui::GetFontSize() * 0.35F;
    const ImVec2 size = ImGui::CalcTextSize(label.data(), label.data() + label.size());
    const float at = x + size.x + 3 * gap > chart.max.x ? x - size.x - 2 * gap : x + 2 * gap;
    const float y = chart.min.y + gap + size.y * 1.4F;  // below the label of the peak
    chart.draw->AddRectFilled({at - gap * 0.6F, y - gap * 0.3F},
                              {at + size.x + gap * 0.6F, y + size.y + gap * 0.3F},
                              faded(ImGui::GetColorU32(ImGuiCol_PopupBg), 0.92F), gap * 0.5F);
    chart.draw->AddText({std::floor(at), std::floor(y)}, theme::accent(), label.data(),
                        label.data() + label.size());
}

}  // namespace shardscope::viewer
