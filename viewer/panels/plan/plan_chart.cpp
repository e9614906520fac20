// See plan_chart.h. Among points at the same spot only one is painted, so that twenty thousand rows cost no
// more than a few hundred.
#include "viewer/panels/plan/plan_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

// Spots of a few pixels, each of which accepts one point of each fate.
class Spots {
  public:
    Spots(const draw::Chart& chart, float side)
        : chart_(chart),
          side_(side),
          columns_(static_cast<std::size_t>(chart.width() / side) + 2),
          taken_(columns_ * (static_cast<std::size_t>(chart.height() / side) + 2) * kPlanFates) {}

    bool take(ImVec2 at, PlanFate fate) {
        const auto place = [&](float value, float from) {
            return static_cast<std::size_t>(std::max(0.0F, (value - from) / side_));
        };
        const std::size_t spot = place(at.y, chart_.min.y) * columns_ + place(at.x, chart_.min.x);
        const std::size_t index = spot * kPlanFates + static_cast<std::size_t>(fate);
        if (index >= taken_.size() || taken_[index]) return false;
        return taken_[index] = true;
    }

  private:
    const draw::Chart& chart_;
    float side_;
    std::size_t columns_;
    std::vector<bool> taken_;
};

class Drawing {
  public:
    Drawing(const PlanList& list, const PlanPicture& picture, const PlanChartLook& look)
        : list_(list), picture_(picture), look_(look), font_(ImGui::GetFontSize()), dot_(font_ * 0.22F) {}

    PlanChartEvents draw(ImVec2 size) {
        draw_title(size.x);
        gutter_ = picture_.untimed.empty() ? 0 : font_ * 5;
        const draw::ChartAxes axes = {.x_low = picture_.x_low,
                                      .x_high = picture_.x_high,
                                      .y_high = picture_.y_high,
                                      .y_low = picture_.y_low,
                                      .x_log = picture_.x_log,
                                      .y_log = picture_.y_log};
        const float height = std::max(font_ * 6, size.y - ImGui::GetTextLineHeightWithSpacing());
        chart_ = begin_chart("plan.chart", {std::max(font_ * 8, size.x - gutter_), height}, axes);
        over_ = ImGui::IsItemHovered();
        if (gutter_ > 0) {
            ImGui::SameLine(0, 0);
            draw::place_button("plan.gutter", {gutter_, height});
            over_ = over_ || ImGui::IsItemHovered();
        }
        draw::items::place("plan.chart", chart_.min, chart_.max,
                           fmt::format("{} points", picture_.points.size() + picture_.untimed.size()));
        draw_limits();
        draw_time_title();
        name_gutter();
        chart_.draw->PushClipRect({chart_.min.x - dot_, chart_.min.y - dot_},
                                  {chart_.max.x + gutter_ + dot_, chart_.max.y + dot_}, true);
        draw_untimed();
        draw_front_line();
        draw_points();
        const PlanChartEvents events = take_mouse();
        chart_.draw->PopClipRect();
        return events;
    }

  private:
    double mapped(double value, bool log) const { return log ? std::log10(std::max(value, 1e-300)) : value; }
    ImVec2 at(const PlanPoint& point) const {
        return {static_cast<float>(chart_.x.pixel(mapped(point.ns, picture_.x_log))), y_of(point.bytes)};
    }
    float y_of(double bytes) const {
        return static_cast<float>(chart_.y.pixel(mapped(bytes, picture_.y_log)));
    }
    PlanFate fate(const PlanPoint& point) const { return list_.items[point.item].fate; }
    int number(const PlanPoint& point) const { return list_.items[point.item].row->number; }
    bool is_pale(const PlanPoint& point) const {
        return point.item < look_.in_table.size() && !look_.in_table[point.item];
    }
    theme::Color color(const PlanPoint& point) const {
        return is_pale(point) ? draw::faded(fate_color(fate(point)), 0.22F) : fate_color(fate(point));
    }

    // The axes' titles: y's above the chart, x's inside it above the axis.
    void draw_title(float width) const {
        const std::string memory = look_.memory == PlanMemory::peak
                                       ? "Peak allocated memory of each rank"
                                       : "Memory that the allocator of a rank reserves";
        draw::text_dim(draw::fit_text(memory + (picture_.y_log ? ", logarithmic" : ""), width));
    }
    void draw_time_title() const {
        const std::string time = look_.time == PlanTime::step ? "Time of a step" : "Time per sample";
        const std::string words =
            draw::fit_text(time + (picture_.x_log ? ", logarithmic" : ""), chart_.width() - font_);
        const ImVec2 wide = ImGui::CalcTextSize(words.c_str());
        chart_.draw->AddText({chart_.max.x - wide.x - font_ * 0.4F, chart_.max.y - wide.y - font_ * 0.2F},
                             theme::text_dim(), words.c_str());
    }

    void draw_limits() {
        for (const double limit : picture_.limits) {
            const float y = y_of(limit);
            if (!(y >= chart_.min.y && y <= chart_.max.y)) continue;
            level_line(chart_, mapped(limit, picture_.y_log), theme::bad(),
                       fmt::format("limit {}", draw::format_size(static_cast<std::int64_t>(limit))), false);
        }
    }

    // Rows whose times are unknown: marks beside the chart, at the height of their memory.
    void draw_untimed() {
        if (picture_.untimed.empty()) return;
        const float left = chart_.max.x + font_ * 0.6F, right = chart_.max.x + gutter_ - font_ * 0.3F;
        Spots spots(chart_, std::max(2.0F, dot_ * 0.7F));
        for (const PlanPoint& point : picture_.untimed) {
            const float y = std::clamp(y_of(point.bytes), chart_.min.y, chart_.max.y);
            if (!spots.take({chart_.min.x, y}, fate(point))) continue;
            chart_.draw->AddRectFilled({left, y - 1}, {right, y + 1}, color(point));
        }
    }

    void name_gutter() const {
        if (gutter_ == 0) return;
        const char* words = "no time";
        const float left = chart_.max.x + font_ * 0.6F, right = chart_.max.x + gutter_ - font_ * 0.3F;
        chart_.draw->AddText(
            {(left + right - ImGui::CalcTextSize(words).x) / 2, chart_.max.y + font_ * 0.28F},
            theme::text_dim(), words);
    }

    // A stair: between two of its points no configuration is both smaller and faster.
    void draw_front_line() const {
        const ImU32 ink = draw::faded(theme::good(), 0.75F);
        for (std::size_t i = 1; i < picture_.stair.size(); ++i) {
            const ImVec2 a = at(picture_.stair[i - 1]), b = at(picture_.stair[i]);
            chart_.draw->AddLine(a, {a.x, b.y}, ink, 1.5F);
            chart_.draw->AddLine({a.x, b.y}, b, ink, 1.5F);
        }
    }

    // The spots grow until there are few enough marks, which become squares when there are many.
    void draw_points() {
        constexpr std::size_t kMostMarks = 6000, kMostShapes = 1000;
        std::vector<const PlanPoint*> marks;
        for (float side = std::max(2.0F, dot_ * 0.9F);; side *= 1.4F) {
            Spots spots(chart_, side);
            marks.clear();
            for (const PlanPoint& point : picture_.points)
                if (spots.take(at(point), fate(point))) marks.push_back(&point);
            if (marks.size() <= kMostMarks || side > font_ * 4) break;
        }
        for (const PlanPoint* point : marks)
            draw_mark(at(*point), fate(*point), color(*point), marks.size() > kMostShapes);
        for (const PlanPoint& point : picture_.front) name_point(point);
        for (const auto* points : {&picture_.points, &picture_.untimed}) {
            for (const PlanPoint& point : *points) {
                if (point.item == look_.chosen) draw_chosen(point);
            }
        }
    }

    void draw_mark(ImVec2 place, PlanFate fate, theme::Color ink, bool plain) const {
        if (plain) {
            const float side = fate == PlanFate::front ? dot_ * 1.3F : dot_ * 0.7F;
            chart_.draw->AddRectFilled({place.x - side, place.y - side}, {place.x + side, place.y + side},
                                       ink);
            return;
        }
        if (fate == PlanFate::too_large) {  // a cross, to differ not only in colour
            const float arm = dot_ * 0.9F;
            chart_.draw->AddLine({place.x - arm, place.y - arm}, {place.x + arm, place.y + arm}, ink, 1.5F);
            chart_.draw->AddLine({place.x - arm, place.y + arm}, {place.x + arm, place.y - arm}, ink, 1.5F);
        } else if (fate == PlanFate::front) {
            chart_.draw->AddNgonFilled(place, dot_ * 1.6F, ink, 12);
        } else {
            chart_.draw->AddNgonFilled(place, dot_, ink, 8);
        }
    }

    void name_point(const PlanPoint& point) const {
        const ImVec2 place = at(point);
        draw::items::place(fmt::format("plan.point.{}", number(point)), {place.x - dot_, place.y - dot_},
                           {place.x + dot_, place.y + dot_}, fate_words(fate(point)));
    }

    ImVec2 place_of(const PlanPoint& point) const {
        if (point.ns > 0) return at(point);
        return {chart_.max.x + gutter_ / 2, std::clamp(y_of(point.bytes), chart_.min.y, chart_.max.y)};
    }

    void draw_chosen(const PlanPoint& point) const {
        const ImVec2 place = place_of(point);
        const ImU32 faint = draw::faded(theme::text(), 0.35F);
        chart_.draw->AddLine({chart_.min.x, place.y}, {place.x, place.y}, faint);
        if (point.ns > 0) chart_.draw->AddLine({place.x, place.y}, {place.x, chart_.max.y}, faint);
        chart_.draw->AddCircle(place, dot_ * 2.4F, theme::text(), 20, 2);
        const std::string label = fmt::format("{}", number(point));
        const ImVec2 wide = ImGui::CalcTextSize(label.c_str());
        const float x = std::min(place.x + dot_ * 3, chart_.max.x + gutter_ - wide.x);
        chart_.draw->AddText({x, std::max(chart_.min.y, place.y - wide.y - dot_)}, theme::text(),
                             label.c_str());
        name_point_chosen(point, place);
    }
    void name_point_chosen(const PlanPoint& point, ImVec2 place) const {
        draw::items::place("plan.chosen", {place.x - dot_, place.y - dot_}, {place.x + dot_, place.y + dot_},
                           fmt::format("{}", number(point)));
    }

    // The nearest point within a small distance, preferring one that the table shows.
    const PlanPoint* nearest() const {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const PlanPoint* best = nullptr;
        float least = font_ * 0.9F;
        const auto look = [&](const PlanPoint& point, float distance) {
            if (is_pale(point)) distance += font_ * 0.5F;
            if (distance > least || (distance == least && best != nullptr)) return;
            least = distance;
            best = &point;
        };
        for (auto point = picture_.points.rbegin(); point != picture_.points.rend(); ++point) {
            const ImVec2 place = at(*point);
            look(*point, std::hypot(place.x - mouse.x, place.y - mouse.y));
        }
        if (mouse.x < chart_.max.x) return best;
        for (const PlanPoint& point : picture_.untimed) look(point, std::abs(place_of(point).y - mouse.y));
        return best;
    }

    PlanChartEvents take_mouse() const {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const bool inside = over_ && mouse.x >= chart_.min.x - dot_ &&
                            mouse.x < chart_.max.x + gutter_ + dot_ && mouse.y >= chart_.min.y - dot_ &&
                            mouse.y < chart_.max.y + dot_;
        PlanChartEvents events;
        const PlanPoint* point = inside ? nearest() : nullptr;
        if (point == nullptr) return events;
        events.hovered = point->item;
        chart_.draw->AddCircle(place_of(*point), dot_ * 2.2F, theme::text_dim(), 16, 1.5F);
        if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) events.clicked = point->item;
        if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) events.opened = point->item;
        return events;
    }

    const PlanList& list_;
    const PlanPicture& picture_;
    const PlanChartLook& look_;
    const float font_, dot_;
    float gutter_ = 0;
    bool over_ = false;
    draw::Chart chart_;
};

}  // namespace

PlanChartEvents draw_plan_chart(const PlanList& list, const PlanPicture& picture, const PlanChartLook& look,
                                ImVec2 size) {
    return Drawing(list, picture, look).draw(size);
}

}  // namespace shardscope::viewer::panels
