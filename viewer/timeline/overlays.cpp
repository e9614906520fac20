// See overlays.h.
#include "viewer/timeline/overlays.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::timeline {
namespace {

constexpr float kLongestTag = 14;  // width of a mark's text, in font sizes

ImU32 arrow_color(Arrow::Kind kind) {
    switch (kind) {
        case Arrow::Kind::collective:
            return theme::kind_color(traces::store::DeviceKind::communication);
        case Arrow::Kind::backward:
            return theme::range_color(traces::store::RangeKind::backward);
        case Arrow::Kind::wait:
            return theme::waiting_color();
        case Arrow::Kind::launch:
            break;
    }
    return theme::peak();
}

class Overlays {
  public:
    Overlays(ImDrawList& draw, const OverlayScene& scene)
        : draw_(draw),
          s_(scene),
          a_(scene.page.area),
          view_(scene.page.view(scene.entry)),
          font_(ImGui::GetFontSize()) {}

    void over_rows() {
        if (s_.page.hits != nullptr) hits(*s_.page.hits);
        if (s_.page.dragged_rows != nullptr && s_.page.dragged_area) {
            area(*s_.page.dragged_area, s_.page.dragged_rows->tracks);
        } else if (s_.page.marked_area != nullptr && s_.entry.area && s_.entry.area->name.empty()) {
            area(*s_.entry.area, s_.page.marked_area->tracks);
        }
        for (const model::SelectedEvent& part : s_.page.links.parts) {
            if (const auto box = s_.page.box_of(view_, part)) {
                draw_.AddRect({box->x0 - 0.5F, box->y0 - 0.5F}, {box->x1 - 0.5F, box->y1 + 0.5F},
                              draw::faded(theme::accent(), 0.9F), 0, 0, 1.5F);
            }
        }
        for (const Arrow& arrow : arrows_of(s_.page.links)) paint_arrow(arrow);
        for (std::size_t i = 0; i < s_.marks.all().size(); ++i) mark_lines(i);
        if (s_.page.measure) measure(*s_.page.measure);
        if (s_.entry.cursor) {
            const float x = std::floor(s_.page.x_of(view_, *s_.entry.cursor));
            draw_.AddRectFilled({x, a_.top()}, {x + 1, a_.max.y}, draw::faded(theme::text(), 0.35F));
        }
        for (std::size_t i = 0; i < s_.marks.all().size(); ++i) mark_tag(i);
    }

    void over_ruler() {
        if (s_.entry.limit) {
            limit_handle(s_.entry.limit->from, true);
            limit_handle(s_.entry.limit->to, false);
        }
        if (s_.entry.cursor) cursor_label(*s_.entry.cursor);
    }

    struct Tag {
        ImVec2 min, max;
        std::string text;
    };
    // The place of a mark's text; nullopt: out of sight.
    std::optional<Tag> tag_of(std::size_t index) const {
        const model::Mark& mark = s_.marks.all()[index];
        const float x0 = s_.page.x_of(view_, mark.from), x1 = s_.page.x_of(view_, mark.to);
        if (x1 < a_.left() || x0 >= a_.max.x) return std::nullopt;
        const std::string text = draw::fit_text(mark.text, font_ * kLongestTag);
        const float width = ImGui::CalcTextSize(text.c_str()).x + font_ * 0.6F;
        const float x = std::clamp(x0, a_.left(), std::max(a_.left(), a_.max.x - width));
        const float y = a_.top() + 1;
        return Tag{{x, y}, {x + width, y + font_ * 1.3F}, text};
    }

  private:
    // The found events: an outline around a wide one, a mark at the row's top for narrow ones.
    void hits(const HitMarks& marks) {
        std::size_t runs = 0;
        const auto lane = [&](const Row& row, int track, int at) {
            const Lane& events =
                s_.page.tracks->tracks[static_cast<std::size_t>(track)].lanes[static_cast<std::size_t>(at)];
            if (!marks.any(track, at)) return;
            const float top = row.pinned ? a_.top() : a_.top() + s_.page.layout().pinned_height;
            const float y = std::max(top, s_.page.y_of(row)), bottom = s_.page.y_of(row) + row.height - 1;
            for (const HitRun& run : fold_hits(events, marks.of(track, at), view_)) {
                ++runs;
                const float x0 = a_.left() + run.x0, x1 = a_.left() + run.x1;
                if (run.outlined) {
                    draw_.AddRect({x0, y}, {x1, bottom}, theme::peak(), 0, 0, 2);
                } else {
                    draw_.AddRectFilled({x0, y}, {x1, std::min(bottom, y + font_ * 0.35F)}, theme::peak());
                }
            }
        };
        for (const Row* row : s_.page.rows_in_sight()) {
            if (row->kind == Row::Kind::lane) lane(*row, row->track, row->lane);
            if (row->kind != Row::Kind::group) continue;
            const RowGroup& group = s_.page.layout().groups[static_cast<std::size_t>(row->group)];
            if (!group.collapsed) continue;
            for (const int track : group.tracks) {
                const auto lanes = s_.page.tracks->tracks[static_cast<std::size_t>(track)].lanes.size();
                for (int at = 0; at < static_cast<int>(lanes); ++at) lane(*row, track, at);
            }
        }
        draw::items::value("timeline.find.marks", fmt::format("{}", runs));
    }

    // A box around each run of the area's rows.
    void area(const model::MarkedArea& marked, const std::vector<bool>& tracks) {
        const auto has = [&](int track) { return tracks[static_cast<std::size_t>(track)]; };
        const float x0 = std::floor(s_.page.x_of(view_, marked.time.from));
        const float x1 = std::max(x0 + 1, s_.page.x_of(view_, marked.time.to));
        float top = 0, bottom = -1;
        const auto box = [&] {
            if (bottom < top) return;
            draw_.AddRectFilled({x0, top}, {x1, bottom}, draw::faded(theme::accent(), 0.16F));
            draw_.AddRect({x0, top}, {x1, bottom}, theme::accent(), 0, 0, 1.5F);
            draw::items::place("timeline.area", {x0, top}, {x1, bottom});
        };
        for (const Row* row : s_.page.rows_in_sight()) {
            bool is_in = row->kind == Row::Kind::lane && has(row->track);
            if (row->kind == Row::Kind::group) {
                const RowGroup& group = s_.page.layout().groups[static_cast<std::size_t>(row->group)];
                is_in = group.collapsed && std::any_of(group.tracks.begin(), group.tracks.end(), has);
            }
            if (!is_in) continue;
            const float below_pinned = row->pinned ? a_.top() : a_.top() + s_.page.layout().pinned_height;
            const float y = std::max(s_.page.y_of(*row), below_pinned);
            if (y > bottom + font_ * 0.5F) {
                box();
                top = y;
            }
            bottom = s_.page.y_of(*row) + row->height;
        }
        box();
    }

    void paint_arrow(const Arrow& arrow) {
        const auto from = s_.page.box_of(view_, arrow.from), to = s_.page.box_of(view_, arrow.to);
        if (!from || !to) return;
        // The parts of a collective begin one after another: its arrows lead from start to start.
        const bool from_start = arrow.kind == Arrow::Kind::collective;
        const ImVec2 a{from_start ? from->x0 : from->x1, (from->y0 + from->y1) / 2};
        const bool to_end = arrow.kind == Arrow::Kind::wait && arrow.to.kind == model::EventKind::runtime;
        const ImVec2 b{to_end ? to->x1 : to->x0, (to->y0 + to->y1) / 2};
        if (std::max(a.x, b.x) < a_.left() || std::min(a.x, b.x) > a_.max.x) return;
        const ImU32 color = arrow_color(arrow.kind);
        const float bend = std::clamp(std::abs(b.x - a.x) / 2, font_ * 1.5F, font_ * 6);
        const float head = font_ * 0.4F;
        draw_.AddBezierCubic(a, {a.x + (from_start ? -bend : bend), a.y}, {b.x - bend, b.y},
                             {b.x - head, b.y}, color, 1.5F, 32);
        draw_.AddTriangleFilled({b.x - head * 1.3F, b.y - head * 0.6F}, b,
                                {b.x - head * 1.3F, b.y + head * 0.6F}, color);
    }

    ImU32 mark_color(std::size_t index) const {
        return static_cast<int>(index) == s_.chosen_mark ? theme::peak() : theme::accent();
    }

    void mark_lines(std::size_t index) {
        const model::Mark& mark = s_.marks.all()[index];
        const float x0 = std::floor(s_.page.x_of(view_, mark.from)), x1 = s_.page.x_of(view_, mark.to);
        const ImU32 color = mark_color(index);
        if (mark.is_range())
            draw_.AddRectFilled({x0, a_.top()}, {std::max(x0 + 1, x1), a_.max.y}, draw::faded(color, 0.1F));
        draw_.AddRectFilled({x0, a_.top()}, {x0 + 1, a_.max.y}, draw::faded(color, 0.7F));
        if (mark.is_range())
            draw_.AddRectFilled({std::floor(x1), a_.top()}, {std::floor(x1) + 1, a_.max.y},
                                draw::faded(color, 0.7F));
    }

    void mark_tag(std::size_t index) {
        const auto tag = tag_of(index);
        if (!tag) return;
        const ImU32 color = mark_color(index);
        draw_.AddRectFilled(tag->min, tag->max, color, 3, ImDrawFlags_RoundCornersBottom);
        draw_.AddText({std::floor(tag->min.x + font_ * 0.3F), std::floor(tag->min.y + font_ * 0.12F)},
                      draw::text_on(color), tag->text.c_str());
        const std::string& text = s_.marks.all()[index].text;
        draw::items::place("timeline.mark." + text, tag->min, tag->max, text);
    }

    void measure(const Measure& m) {
        const float x0 = s_.page.x_of(view_, m.first()), x1 = s_.page.x_of(view_, m.last());
        const ImU32 color = theme::peak();
        draw_.AddRectFilled({x0, a_.top()}, {std::max(x0 + 1, x1), a_.max.y}, draw::faded(color, 0.12F));
        for (const float x : {std::floor(x0), std::floor(x1)})
            draw_.AddRectFilled({x, a_.top()}, {x + 1, a_.max.y}, color);
        // The figures are in the middle of the visible part, a third down, where they cover little.
        const std::string length = draw::format_duration(static_cast<double>(m.length()));
        const std::string ends = fmt::format("{} to {}", instant_text(m.first()), instant_text(m.last()));
        const float width =
            std::max(ImGui::CalcTextSize(length.c_str()).x, ImGui::CalcTextSize(ends.c_str()).x) + font_;
        const float middle = (std::clamp(x0, a_.left(), a_.max.x) + std::clamp(x1, a_.left(), a_.max.x)) / 2;
        const float x =
            std::floor(std::clamp(middle - width / 2, a_.left(), std::max(a_.left(), a_.max.x - width)));
        const float y = std::floor(a_.top() + a_.height() * 0.3F);
        const ImVec2 max{x + width, y + font_ * 2.9F};
        draw_.AddRectFilled({x, y}, max, theme::raised(), 4);
        draw_.AddRect({x, y}, max, color, 4);
        draw_.AddText({std::floor(x + (width - ImGui::CalcTextSize(length.c_str()).x) / 2),
                       std::floor(y + font_ * 0.25F)},
                      theme::text(), length.c_str());
        draw_.AddText(
            {std::floor(x + (width - ImGui::CalcTextSize(ends.c_str()).x) / 2), std::floor(y + font_ * 1.5F)},
            theme::text_dim(), ends.c_str());
        draw::items::place("timeline.measure", {x, y}, max, measure_text(m));
        draw::items::place("timeline.measure.from", edge_box(m.from).min, edge_box(m.from).max);
        draw::items::place("timeline.measure.to", edge_box(m.to).min, edge_box(m.to).max);
    }

    // The area in the rows where the mouse can grab an edge.
    Tag edge_box(std::int64_t time) const {
        const float x = s_.page.x_of(view_, time), y = a_.top() + a_.height() * 0.6F;
        return {{x - 1, y}, {x + 1, y + font_}, {}};
    }

    void limit_handle(std::int64_t time, bool from) {
        const float x = std::floor(s_.page.x_of(view_, time));
        if (x < a_.left() - 1 || x > a_.max.x + 1) return;
        const float y0 = a_.min.y, y1 = a_.top() - 1, grip = font_ * 0.45F;
        draw_.AddRectFilled({x, y0}, {x + 1, y1}, theme::accent());
        const float out = from ? x - grip : x + grip;  // the grip is outside the range
        draw_.AddRectFilled({std::min(x, out), y0 + font_ * 0.3F}, {std::max(x, out) + 1, y0 + font_ * 1.3F},
                            theme::accent(), 3);
        draw::items::place(from ? "timeline.limit.from" : "timeline.limit.to", {x - 2, y0}, {x + 2, y1},
                           instant_text(time));
    }

    void cursor_label(std::int64_t time) {
        const float x = s_.page.x_of(view_, time);
        if (x < a_.left() || x >= a_.max.x) return;
        const std::string label = draw::format_decimal(static_cast<double>(time) / 1e6, 3) + " ms";
        const float width = ImGui::CalcTextSize(label.c_str()).x + font_ * 0.6F;
        const float left = std::clamp(std::floor(x - width / 2), a_.left(), a_.max.x - width);
        draw_.AddRectFilled({left, a_.min.y}, {left + width, a_.min.y + font_ * 1.4F}, theme::accent(), 3);
        draw_.AddText({std::floor(left + font_ * 0.3F), std::floor(a_.min.y + font_ * 0.2F)},
                      draw::text_on(theme::accent()), label.c_str());
        draw::items::place("timeline.cursor", {left, a_.min.y}, {left + width, a_.min.y + font_ * 1.4F},
                           label);
    }

    ImDrawList& draw_;
    const OverlayScene& s_;
    const TimelineArea& a_;
    model::TimeView view_;
    float font_;
};

}  // namespace

void paint_overlays(ImDrawList& draw, const OverlayScene& scene) {
    const TimelineArea& a = scene.page.area;
    draw.PushClipRect({a.left(), a.top()}, a.max, true);
    Overlays(draw, scene).over_rows();
    draw.PopClipRect();
}

void paint_ruler_overlays(ImDrawList& draw, const OverlayScene& scene) {
    const TimelineArea& a = scene.page.area;
    draw.PushClipRect({a.left(), a.min.y}, {a.max.x, a.top()}, true);
    Overlays(draw, scene).over_ruler();
    draw.PopClipRect();
}

int mark_at(const OverlayScene& scene, ImVec2 point) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const Overlays overlays(*draw, scene);
    for (std::size_t i = scene.marks.all().size(); i-- > 0;) {  // the last one painted is on top
        const auto tag = overlays.tag_of(i);
        if (tag && point.x >= tag->min.x && point.x < tag->max.x && point.y >= tag->min.y &&
            point.y < tag->max.y) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

}  // namespace shardscope::viewer::timeline
