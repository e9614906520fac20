// See minimap_view.h.
#include "viewer/timeline/minimap_view.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <fmt/core.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/measure.h"

namespace shardscope::viewer::timeline {
namespace {

model::TimeView strip_view(const TimelinePage& page, ImVec2 min, ImVec2 max) {
    const model::TimeSpan whole = page.whole();
    return {whole.from, whole.to, std::max(1.0, static_cast<double>(max.x - min.x))};
}

// Without device events the strip shows host ranges, of any kind.
theme::Color work_color(const Minimap& map) {
    return map.of_devices ? theme::kind_color(traces::store::DeviceKind::kernel)
                          : theme::range_color(traces::store::RangeKind::operation);
}

// The strip's contents at a place, and its colours: it has no legend of its own.
void slice_tip(const Minimap& map, std::int64_t time) {
    if (map.slices.empty()) return;
    const auto last = static_cast<double>(map.slices.size() - 1);
    const double share = static_cast<double>(time - map.whole.from) /
                         static_cast<double>(std::max<std::int64_t>(1, map.whole.to - map.whole.from));
    const MinimapSlice& slice =
        map.slices[static_cast<std::size_t>(std::clamp(share * (last + 1), 0.0, last))];
    draw::items::value("timeline.minimap.tip", draw::format_percent(100 * static_cast<double>(slice.busy)));
    const auto percent = [](float part) { return draw::format_percent(100 * static_cast<double>(part)); };
    if (!map.of_devices) {
        draw::begin_tip("The whole trace: host threads with a range");
        draw::tip_row("In a range", percent(slice.busy), work_color(map));
    } else {
        draw::begin_tip("The whole trace: busy devices");
        draw::tip_row("Kernels", percent(slice.busy - slice.communication - slice.copies), work_color(map));
        draw::tip_row("Copies, fills alone", percent(slice.copies),
                      theme::kind_color(traces::store::DeviceKind::memcpy));
        draw::tip_row("Communication alone", percent(slice.communication),
                      theme::kind_color(traces::store::DeviceKind::communication));
    }
    draw::end_tip();
}

void paint_slices(ImDrawList& draw, const Minimap& map, ImVec2 min, ImVec2 max) {
    const float height = max.y - min.y - 2;
    const float count = static_cast<float>(map.slices.size());
    const ImU32 work = work_color(map);
    const ImU32 copies = theme::kind_color(traces::store::DeviceKind::memcpy);
    const ImU32 waits = theme::kind_color(traces::store::DeviceKind::communication);
    // At most one rectangle per pixel: the mean of the slices in it, which preserves the busy time.
    const int pixels = std::max(1, static_cast<int>(max.x - min.x));
    const int columns = std::min(pixels, static_cast<int>(map.slices.size()));
    for (int c = 0; c < columns; ++c) {
        const auto first =
            map.slices.size() * static_cast<std::size_t>(c) / static_cast<std::size_t>(columns);
        const auto last =
            map.slices.size() * (static_cast<std::size_t>(c) + 1) / static_cast<std::size_t>(columns);
        float busy = 0, communication = 0, copied = 0;
        for (std::size_t i = first; i < last; ++i) {
            busy += map.slices[i].busy;
            communication += map.slices[i].communication;
            copied += map.slices[i].copies;
        }
        const float n = static_cast<float>(last - first);
        busy /= n;
        communication /= n;
        copied /= n;
        if (busy <= 0) continue;
        const float x0 = min.x + (max.x - min.x) * static_cast<float>(first) / count;
        const float x1 = min.x + (max.x - min.x) * static_cast<float>(last) / count;
        const float top = max.y - 1 - std::max(1.0F, height * busy);
        const float between = max.y - 1 - height * (busy - communication);
        const float below = max.y - 1 - height * (busy - communication - copied);
        if (communication > 0) draw.AddRectFilled({x0, top}, {x1, between}, waits);
        if (copied > 0) draw.AddRectFilled({x0, std::max(top, between)}, {x1, below}, copies);
        if (busy > communication + copied)
            draw.AddRectFilled({x0, std::max(top, below)}, {x1, max.y - 1}, work);
    }
}

// Marks along the upper edge where found events run, at most one per pixel.
void paint_hits(ImDrawList& draw, const std::vector<bool>& strip, ImVec2 min, ImVec2 max) {
    const float width = (max.x - min.x) / static_cast<float>(strip.size());
    std::size_t marks = 0;
    for (std::size_t i = 0; i < strip.size();) {
        if (!strip[i]) {
            ++i;
            continue;
        }
        const float x0 = std::floor(min.x + width * static_cast<float>(i));
        float x1 = x0 + 1;
        for (; i < strip.size() && min.x + width * static_cast<float>(i) < x1 + 1; ++i) {
            if (strip[i]) x1 = std::max(x1, std::ceil(min.x + width * static_cast<float>(i + 1)));
        }
        draw.AddRectFilled({x0, min.y + 1}, {x1, min.y + 5}, theme::peak());
        ++marks;
    }
    draw::items::value("timeline.minimap.marks", fmt::format("{}", marks));
}

}  // namespace

float MinimapView::height() {
    return std::round(ImGui::GetFontSize() * 1.8F);
}

void MinimapView::draw(model::OpenTrace& entry, const TimelinePage& page, const Minimap* map,
                       const model::MarkBook& marks, ImVec2 min, ImVec2 max) {
    const model::TimeView view = strip_view(page, min, max);
    ImGui::SetCursorScreenPos(min);
    draw::place_button("minimap", {max.x - min.x, max.y - min.y});
    draw::items::mark("timeline.minimap", fmt::format("{} to {}", instant_text(entry.visible.from),
                                                      instant_text(entry.visible.to)));
    const bool looked_at = ImGui::IsItemHovered() && !ImGui::IsItemActive();
    handle_mouse(entry, page, view, min);
    if (map != nullptr && looked_at)
        slice_tip(*map, view.time(static_cast<double>(ImGui::GetIO().MousePos.x - min.x)));

    ImDrawList& list = *ImGui::GetWindowDrawList();
    list.PushClipRect(min, max, true);
    list.AddRectFilled(min, max, theme::ground());
    if (map != nullptr) paint_slices(list, *map, min, max);
    const auto x_of = [&](std::int64_t time) {
        return static_cast<float>(std::clamp(static_cast<double>(min.x) + view.pixel(time),
                                             static_cast<double>(min.x), static_cast<double>(max.x)));
    };
    if (entry.limit) {
        list.AddRectFilled({x_of(entry.limit->from), max.y - 3},
                           {std::max(x_of(entry.limit->to), x_of(entry.limit->from) + 2), max.y},
                           theme::accent());
    }
    for (const model::Mark& mark : marks.all())
        list.AddRectFilled({x_of(mark.from), min.y}, {x_of(mark.from) + 2, max.y}, theme::accent());
    if (entry.cursor) {
        const float x = std::floor(x_of(*entry.cursor));
        list.AddRectFilled({x, min.y}, {x + 1, max.y}, draw::faded(theme::text(), 0.6F));
    }
    // The time outside the view is dimmed; a window too small to see is drawn three pixels wide.
    float x0 = x_of(entry.visible.from), x1 = x_of(entry.visible.to);
    if (x1 - x0 < 3) {
        x0 = std::clamp((x0 + x1) / 2 - 1.5F, min.x, max.x - 3);
        x1 = x0 + 3;
    }
    const ImU32 veil = draw::faded(theme::ground(), 0.6F);
    list.AddRectFilled(min, {x0, max.y}, veil);
    list.AddRectFilled({x1, min.y}, max, veil);
    list.AddRect({x0, min.y}, {x1, max.y}, theme::text_dim());
    if (page.hits != nullptr) paint_hits(list, page.hits->strip, min, max);
    list.PopClipRect();
}

void MinimapView::handle_mouse(model::OpenTrace& entry, const TimelinePage& page, const model::TimeView& view,
                               ImVec2 min) {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const auto time = view.time(static_cast<double>(mouse.x - min.x));
    const double edge = static_cast<double>(ImGui::GetFontSize()) * 0.35;
    const double x = static_cast<double>(mouse.x - min.x);
    const double from = view.pixel(entry.visible.from), to = view.pixel(entry.visible.to);
    // The edges stretch the window only if it is wide enough to be dragged by its middle too.
    const bool wide = to - from > edge * 4;
    const bool at_from = wide && std::abs(x - from) <= edge, at_to = wide && std::abs(x - to) <= edge;
    if (ImGui::IsItemHovered()) {
        if (at_from || at_to) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
        const float wheel = ImGui::GetIO().MouseWheel;
        if (wheel != 0) page.zoom(entry, time, std::pow(model::kWheelStep, static_cast<double>(wheel)));
    }
    if (ImGui::IsItemActivated()) {
        anchor_ = time;
        before_ = entry.visible;
        moved_ = false;
        const bool inside = x >= from && x <= to;
        drag_ = ImGui::GetIO().KeyShift ? Drag::anew : at_from ? Drag::from : at_to ? Drag::to : Drag::move;
        if (drag_ == Drag::move && !inside) {  // the window jumps to the mouse and may be dragged on
            const std::int64_t half = entry.visible.length() / 2;
            const model::TimeSpan there = panned({entry.visible.from, entry.visible.to}, page.whole(),
                                                 time - (entry.visible.from + half));
            TimelinePage::show(entry, there);
            before_ = entry.visible;
        }
    }
    if (!ImGui::IsItemActive()) {
        drag_ = Drag::none;
        return;
    }
    if (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2)) moved_ = true;
    if (!moved_) return;
    const std::int64_t shortest = model::kShortestView;
    switch (drag_) {
        case Drag::move:
            TimelinePage::show(entry, panned({before_.from, before_.to}, page.whole(), time - anchor_));
            break;
        case Drag::from:
            entry.visible = {std::min(time, before_.to - shortest), before_.to};
            break;
        case Drag::to:
            entry.visible = {before_.from, std::max(time, before_.from + shortest)};
            break;
        case Drag::anew:
            entry.visible = {std::min(anchor_, time), std::max(std::max(anchor_, time), anchor_ + shortest)};
            break;
        case Drag::none:
            break;
    }
}

}  // namespace shardscope::viewer::timeline
