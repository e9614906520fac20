// See gestures.h.
#include "viewer/timeline/gestures.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "viewer/draw/text.h"
#include "viewer/timeline/measure.h"

namespace shardscope::viewer::timeline {
namespace {

float reach() {  // pixels within which an edge attracts the mouse
    return std::round(ImGui::GetFontSize() * 0.4F);
}

}  // namespace

void Gestures::handle(model::Session& session, TimelinePage& page, const std::vector<std::int64_t>& catches,
                      bool covered) {
    page.hovered = {};
    hit_.reset();
    clicked_name_ = nullptr;
    wants_menu_ = over_time_ = false;
    catches_ = catches;
    const TimelineArea& area = page.area;
    ImGui::SetCursorScreenPos(area.min);
    draw::place_button("timeline", {area.outer - area.min.x, area.max.y - area.min.y},
                       ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight);
    const ImGuiIO& io = ImGui::GetIO();
    model::OpenTrace& entry = *session.current();
    const bool over = ImGui::IsItemHovered();
    const ImVec2 mouse = io.MousePos;
    const bool in_names = mouse.x < area.left(), in_bar = mouse.x >= area.max.x;
    over_time_ = over && !in_names && !in_bar;

    if (over && io.MouseWheel != 0) turn_wheel(entry, page, mouse);
    if (over && io.MouseWheelH != 0)
        page.pan_pixels(entry, -static_cast<double>(io.MouseWheelH * ImGui::GetFontSize()) * 4);
    for (const bool right : {false, true}) {
        if (over && ImGui::IsMouseClicked(right ? ImGuiMouseButton_Right : ImGuiMouseButton_Left))
            press(entry, page, mouse, right, covered);
    }
    if (ImGui::IsItemActive()) go_on(entry, page, mouse, io.MouseDelta);
    if (over_time_) entry.cursor = page.time_at(entry, mouse.x);
    // The start of a measure with the right button may turn out to be a click for the event's menu.
    const bool resting = drag_ == Drag::none || drag_ == Drag::pan || (drag_ == Drag::measure && !moved_);
    if (over_time_ && !covered && mouse.y >= area.top() && resting) find_hovered(entry, page, mouse);
    const Drag edge = drag_ == Drag::none && over ? drag_for(entry, page, mouse, false) : drag_;
    if (edge == Drag::limit_from || edge == Drag::limit_to || edge == Drag::measure_from ||
        edge == Drag::measure_to) {
        ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    }
    if (ImGui::IsItemDeactivated()) release(session, page, right_);
    if (over && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) &&
        page.hovered.kind != model::EventKind::none) {
        const EventTime time = time_of(*page.trace, page.hovered);
        TimelinePage::show(entry, framed({time.start, time.end}, page.whole()));
    }
}

void Gestures::press(model::OpenTrace& entry, TimelinePage& page, ImVec2 mouse, bool right, bool covered) {
    moved_ = false;
    right_ = right;
    pressed_at_ = mouse;
    drag_ = covered && !right ? Drag::other : drag_for(entry, page, mouse, right);
    drag_from_ = drag_ == Drag::measure || drag_ == Drag::area ? caught(entry, page, mouse)
                                                               : page.time_at(entry, mouse.x);
    area_row_ = nearest_row(page, mouse.y);
    const Row* row = page.row_at(mouse.y);
    pressed_row_ =
        row == nullptr || mouse.y < page.area.top() ? -1 : static_cast<int>(row - page.layout().rows.data());
}

Gestures::Drag Gestures::drag_for(const model::OpenTrace& entry, const TimelinePage& page, ImVec2 mouse,
                                  bool right) const {
    const TimelineArea& area = page.area;
    const ImGuiIO& io = ImGui::GetIO();
    if (mouse.x >= area.max.x) return Drag::scroll;
    const bool in_ruler = mouse.y < area.top();
    if (mouse.x < area.left()) return in_ruler || right ? Drag::none : Drag::name;
    const model::TimeView view = page.view(entry);
    const auto near = [&](std::int64_t time) { return std::abs(page.x_of(view, time) - mouse.x) <= reach(); };
    if (in_ruler && entry.limit && !right) {
        if (near(entry.limit->to)) return Drag::limit_to;
        if (near(entry.limit->from)) return Drag::limit_from;
    }
    if (right) return Drag::measure;
    if (io.KeyCtrl) return in_ruler ? Drag::measure : Drag::area;
    if (in_ruler || io.KeyShift) return Drag::limit;
    if (page.measure) {
        if (near(page.measure->to)) return Drag::measure_to;
        if (near(page.measure->from)) return Drag::measure_from;
    }
    return measuring ? Drag::measure : Drag::pan;
}

void Gestures::go_on(model::OpenTrace& entry, TimelinePage& page, ImVec2 mouse, ImVec2 delta) {
    if (ImGui::IsMouseDragging(right_ ? ImGuiMouseButton_Right : ImGuiMouseButton_Left,
                               ImGui::GetFontSize() * 0.25F)) {
        moved_ = true;
    }
    if (!moved_) return;
    const TimelineArea& area = page.area;
    // Outside the area the mouse counts as on its edge: a range never ends outside the visible time.
    const ImVec2 inside{std::clamp(mouse.x, area.left(), area.max.x), mouse.y};
    const std::int64_t time = page.time_at(entry, inside.x);
    switch (drag_) {
        case Drag::pan:
            page.pan_pixels(entry, -static_cast<double>(delta.x));
            page.scroll -= delta.y;
            break;
        case Drag::scroll:
            page.scroll += delta.y * page.layout().height / std::max(1.0F, area.height());
            break;
        case Drag::limit:
            entry.limit = model::TimeRange{std::min(drag_from_, time), std::max(drag_from_, time) + 1};
            break;
        case Drag::limit_from:
            entry.limit->from = std::min(time, entry.limit->to - 1);
            break;
        case Drag::limit_to:
            entry.limit->to = std::max(time, entry.limit->from + 1);
            break;
        case Drag::measure:
            page.measure = Measure{drag_from_, caught(entry, page, inside)};
            break;
        case Drag::measure_from:
            page.measure->from = caught(entry, page, inside);
            break;
        case Drag::measure_to:
            page.measure->to = caught(entry, page, inside);
            break;
        case Drag::area: {
            const std::int64_t end = caught(entry, page, inside);
            const std::size_t row = nearest_row(page, mouse.y);
            page.dragged_area =
                model::MarkedArea{.time = {std::min(drag_from_, end), std::max(drag_from_, end)},
                                  .rows = keys_of_rows(page.layout(), page.kept_area.track_keys(),
                                                       std::min(area_row_, row), std::max(area_row_, row)),
                                  .name = {}};
            break;
        }
        case Drag::name:
        case Drag::other:
        case Drag::none:
            break;
    }
}

std::size_t Gestures::nearest_row(const TimelinePage& page, float y) {
    std::size_t nearest = 0;
    float least = kFar;
    for (const Row* row : page.rows_in_sight()) {
        const float top = page.y_of(*row);
        const float far = std::max({0.0F, top - y, y - (top + row->height)});
        if (far >= least) continue;
        least = far;
        nearest = static_cast<std::size_t>(row - page.layout().rows.data());
    }
    return nearest;
}

void Gestures::release(model::Session& session, TimelinePage& page, bool right) {
    const Drag drag = drag_;
    drag_ = Drag::none;
    if (const auto area = std::exchange(page.dragged_area, std::nullopt);
        area && area->time.length() > 0 && !area->rows.empty())
        session.current()->area = *area;
    if (moved_) return;
    if (right) {
        wants_menu_ = true;
        if (page.hovered.kind != model::EventKind::none) page.select(session, page.hovered);
        return;
    }
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    if (drag == Drag::name) {
        clicked_name_ = page.row_at(mouse.y);
        return;
    }
    if (drag == Drag::scroll || drag == Drag::other || mouse.y < page.area.top()) return;
    const Row* row = page.row_at(mouse.y);
    if (row != nullptr && row->kind == Row::Kind::group) {
        clicked_name_ = row;
        return;
    }
    page.select(session, page.hovered);
    page.reveal = page.hovered;  // the details pane must not cover it
    if (page.hovered.kind == model::EventKind::none) page.measure.reset();
}

void Gestures::turn_wheel(model::OpenTrace& entry, TimelinePage& page, ImVec2 mouse) {
    const ImGuiIO& io = ImGui::GetIO();
    if (mouse.x < page.area.left() || mouse.x >= page.area.max.x || io.KeyShift) {
        page.scroll -= io.MouseWheel * ImGui::GetFontSize() * 4;
        return;
    }
    // Ctrl zooms in finer steps.
    const double notches = static_cast<double>(io.MouseWheel) * (io.KeyCtrl ? 0.25 : 1.0);
    page.zoom(entry, page.time_at(entry, mouse.x), std::pow(model::kWheelStep, notches));
}

void Gestures::find_hovered(const model::OpenTrace& entry, TimelinePage& page, ImVec2 mouse) {
    const Row* row = page.row_at(mouse.y);
    if (row == nullptr || row->kind != Row::Kind::lane) return;
    const FoldedRow* folded = page.folded_rows.find(row->track, row->lane);
    if (folded == nullptr) return;
    const Lane& lane = page.lane_of(*row);
    hit_ = hit_lane(lane, folded->lane, page.view(entry), static_cast<double>(mouse.x - page.area.left()));
    if (hit_) page.hovered = lane.event(hit_->item);
}

// The mouse's instant, or an edge near it: of an event in the row under the mouse, else of a mark, else of an
// event in any visible row.
std::int64_t Gestures::caught(const model::OpenTrace& entry, const TimelinePage& page, ImVec2 mouse) const {
    const std::int64_t time = page.time_at(entry, mouse.x);
    const auto far =
        static_cast<std::int64_t>(std::ceil(page.view(entry).ns_per_pixel() * static_cast<double>(reach())));
    const Row* under = mouse.y >= page.area.top() ? page.row_at(mouse.y) : nullptr;
    if (under != nullptr && under->kind == Row::Kind::lane) {
        if (const auto edge = nearest_edge(page.lane_of(*under), time, far)) return *edge;
    }
    if (const auto edge = nearest_of(catches_, time, far)) return *edge;
    std::vector<std::int64_t> edges;
    for (const Row* row : page.rows_in_sight()) {
        if (row->kind != Row::Kind::lane) continue;
        if (const auto edge = nearest_edge(page.lane_of(*row), time, far)) edges.push_back(*edge);
    }
    return nearest_of(edges, time, far).value_or(time);
}

std::optional<int> Gestures::dragged_row() const {
    return drag_ == Drag::name && moved_ && pressed_row_ >= 0 ? std::optional(pressed_row_) : std::nullopt;
}

}  // namespace shardscope::viewer::timeline
