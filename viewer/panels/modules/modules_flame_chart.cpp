// See modules_flame_chart.h.
#include "viewer/panels/modules/modules_flame_chart.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include <fmt/core.h>

#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/details.h"

namespace shardscope::viewer::panels {
namespace {

constexpr double kZoomStep = 1.25;  // a notch of the wheel

ImU32 mixed(ImU32 a, ImU32 b, float share) {
    const ImVec4 x = ImGui::ColorConvertU32ToFloat4(a), y = ImGui::ColorConvertU32ToFloat4(b);
    return ImGui::ColorConvertFloat4ToU32(
        {x.x + (y.x - x.x) * share, x.y + (y.y - x.y) * share, x.z + (y.z - x.z) * share, 1});
}

// The colour of its kind; ranges of one kind have shades by name, so that neighbours differ.
ImU32 bar_color(const traces::store::Trace& trace, model::SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    if (event.kind == model::EventKind::device) return theme::kind_color(trace.device.kind[i]);
    if (event.kind == model::EventKind::runtime) return theme::runtime_color();
    const auto name = static_cast<std::uint32_t>(trace.ranges.name[i]);
    const float shade = static_cast<float>(name * 2654435761U >> 28) / 15.0F;
    return mixed(theme::range_color(trace.ranges.kind[i]), theme::ground(), 0.32F * shade);
}

void draw_tip(const traces::store::Trace& trace, const FlameChart& chart, model::SelectedEvent event,
              model::TimeRange time, std::size_t count) {
    const timeline::EventDetails details = timeline::describe(trace, event);
    draw::begin_tip(draw::shorten_middle(details.title, 80));
    if (count > 1)
        draw::tip_row("in this pixel",
                      fmt::format("{} events", draw::format_count(static_cast<std::int64_t>(count))));
    draw::tip_row("after the call's start",
                  draw::format_duration(static_cast<double>(time.from - chart.call.from)));
    for (const timeline::Detail& detail : details.rows)
        draw::tip_row(detail.label, draw::shorten_middle(detail.value, 60));
    draw::end_tip();
}

}  // namespace

void FlameView::take_mouse(bool hovered, float left, float width) {
    const ImGuiIO& io = ImGui::GetIO();
    const model::TimeSpan whole{chart_->time.from, std::max(chart_->time.to, chart_->time.from + 1)};
    model::TimeSpan visible{visible_.from, visible_.to};
    const model::TimeView view{visible.from, visible.to, std::max(1.0, static_cast<double>(width))};
    if (hovered && io.MouseWheel != 0 && !io.KeyCtrl) {
        const double at = std::clamp(static_cast<double>(io.MousePos.x - left), 0.0, view.width);
        visible =
            zoomed(visible, whole, view.time(at), std::pow(kZoomStep, -static_cast<double>(io.MouseWheel)));
    }
    if (hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) dragging_ = true;
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) dragging_ = false;
    if (dragging_ && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
        if (io.MouseDelta.x != 0) {
            visible = panned(
                visible, whole,
                -static_cast<std::int64_t>(static_cast<double>(io.MouseDelta.x) * view.ns_per_pixel()));
        }
        if (io.MouseDelta.y != 0) ImGui::SetScrollY(ImGui::GetScrollY() - io.MouseDelta.y);
    }
    visible_ = {visible.from, visible.to};
}

// Ticks in time since the call began, and the background: brighter while the host is in the call.
void FlameView::draw_axis(const model::TimeView& view, ImVec2 at, float width, float height) const {
    const float font = ImGui::GetFontSize();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(at, {at.x + width, at.y + height}, theme::surface());
    const auto x_of = [&](std::int64_t time) {
        return at.x + static_cast<float>(std::clamp(view.pixel(time), 0.0, view.width));
    };
    const float from = x_of(chart_->call.from), to = x_of(chart_->call.to);
    draw->AddRectFilled({from, at.y}, {to, at.y + height}, draw::faded(theme::raised(), 0.6F));
    const auto zero = static_cast<double>(chart_->call.from);
    const int count = std::clamp(static_cast<int>(width / (font * 7)), 2, 14);
    for (const draw::Tick& tick :
         make_ticks(static_cast<double>(view.from) - zero, static_cast<double>(view.to) - zero, count,
                    draw::AxisUnit::nanoseconds)) {
        const float x = std::floor(x_of(static_cast<std::int64_t>(tick.value + zero)));
        draw->AddRectFilled({x, at.y}, {x + 1, at.y + height}, draw::faded(theme::text_dim(), 0.18F));
        const float wide = ImGui::CalcTextSize(tick.label.c_str()).x;
        if (x + 4 + wide < at.x + width) draw->AddText({x + 4, at.y}, theme::text_dim(), tick.label.c_str());
    }
    if (to > at.x && to < at.x + width - 1)
        draw->AddRectFilled({to, at.y}, {to + 1, at.y + height}, draw::faded(theme::accent(), 0.7F));
}

void FlameView::draw_lane(const model::Session& session, const traces::store::Trace& trace,
                          const FlameLane& lane, std::size_t number, const model::TimeView& view, ImVec2 at,
                          float left, float height) {
    const float font = ImGui::GetFontSize();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    if (!lane.title.empty()) {
        const std::string title = draw::fit_text(lane.title, left - at.x - font * 0.6F);
        draw->AddText({at.x, at.y + (height - font) / 2}, theme::text_dim(), title.c_str());
    }
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    std::size_t n = 0;
    for (const ShownBar& bar : shown_bars(lane, view)) {
        const FlameBar& first = lane.bars[bar.first];
        const model::SelectedEvent event{lane.kind, first.index};
        const ImVec2 min{left + static_cast<float>(bar.x0), at.y + 1};
        const float gap = bar.x1 - bar.x0 > 4 ? 1.0F : 0.0F;  // separates neighbours without an outline
        const ImVec2 max{left + static_cast<float>(bar.x1) - gap, at.y + height - 1};
        const ImU32 color = bar_color(trace, event);
        draw->AddRectFilled(min, max, color);
        if (bar.count == 1 && max.x - min.x > font * 2.2F) {
            const std::string label =
                draw::fit_text(timeline::bar_label(trace, event), max.x - min.x - font * 0.5F);
            draw->AddText({min.x + font * 0.25F, min.y + (max.y - min.y - font) / 2 - 1},
                          draw::text_on(color), label.c_str());
        }
        if (session.selected == event) draw->AddRect(min, max, theme::text(), 0, 0, 2);
        if (draw::items::kept()) {
            draw::items::place(fmt::format("modules.flame.{}.{}", number, n++), min, max,
                               timeline::bar_label(trace, event));
        }
        if (mouse.x >= min.x && mouse.x < std::max(max.x, min.x + 1) && mouse.y >= at.y &&
            mouse.y < at.y + height)
            hovered_ = Bar{event, {first.start, first.end}, bar.count};
    }
}

void FlameView::draw(model::Session& session, const model::TracePtr& trace,
                     const std::shared_ptr<const FlameChart>& chart, ImVec2 size) {
    chart_ = chart;
    if (shown_ != chart) {
        shown_ = chart;
        const std::int64_t length = std::max(chart->time.length(), model::kShortestView);
        visible_ = {chart->time.from - length / 100, chart->time.from + length + length / 100 + 1};
    }
    const float font = ImGui::GetFontSize();
    constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoMove;
    ImGui::BeginChild("flame", size, false, kFlags);
    const float row = std::round(font * 1.45F), axis = std::round(font * 1.5F), gap = std::round(font * 0.5F);
    const float width = ImGui::GetContentRegionAvail().x;
    const float label = std::min(font * 9, width * 0.22F);
    const ImVec2 start = ImGui::GetCursorScreenPos();
    const float left = start.x + label, chart_width = std::max(1.0F, width - label);

    float height = axis;
    for (const FlameLane& lane : chart->lanes) height += row + (lane.title.empty() ? 0 : gap);
    height = std::max(height, ImGui::GetContentRegionAvail().y);
    draw::place_button("chart", {std::max(1.0F, width), std::max(1.0F, height)});
    draw::items::mark("modules.flame", fmt::format("{} lanes", chart->lanes.size()));
    const bool hovered = ImGui::IsItemHovered();
    take_mouse(hovered, left, chart_width);

    const model::TimeView view{visible_.from, visible_.to, static_cast<double>(chart_width)};
    draw_axis(view, {left, start.y}, chart_width, height);
    hovered_.reset();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const ImVec2 top = ImGui::GetWindowPos();
    const float bottom = top.y + ImGui::GetWindowHeight();
    float y = start.y + axis;
    for (std::size_t i = 0; i < chart->lanes.size(); ++i) {
        const FlameLane& lane = chart->lanes[i];
        if (!lane.title.empty()) y += gap;
        if (y + row > top.y && y < bottom) {
            draw_lane(session, *trace, lane, i, view, {start.x, y}, left, row);
        }
        y += row;
    }
    if (hovered && ImGui::GetIO().MousePos.x >= left) {
        const float x = std::floor(ImGui::GetIO().MousePos.x);
        draw->AddRectFilled({x, start.y}, {x + 1, start.y + height}, draw::faded(theme::text(), 0.25F));
    }
    if (hovered && hovered_ && !ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
        draw_tip(*trace, *chart, hovered_->event, hovered_->time, hovered_->count);
        if (ImGui::IsMouseReleased(ImGuiMouseButton_Left)) session.selected = hovered_->event;
        if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
            session.go_to(hovered_->time, chart->rank, hovered_->event);
    }
    ImGui::EndChild();
}

}  // namespace shardscope::viewer::panels
