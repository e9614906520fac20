// See painter.h. There is one clip rectangle for the pinned rows and one for those that scroll, not one for
// each item; labels are shortened to fit.
#include "viewer/timeline/painter.h"

#include <span>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/rank_steps.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/canvas.h"
#include "viewer/timeline/counter_fold.h"
#include "viewer/timeline/details.h"

namespace shardscope::viewer::timeline {
namespace {

// --- Memory by category and counters as rows of the timeline. Exact in each pixel: the solid part holds
// throughout the pixel, the pale part only at its highest moment.

class CurvePainter : private Canvas {
  public:
    using Canvas::Canvas;

    void memory(const Row& row) {
        ground(row);
        const auto it = p_.memory.find(row.rank);
        if (it == p_.memory.end() || it->second.most <= 0 || it->second.columns.empty()) return;
        const MemoryRow& memory = it->second;
        const float step = p_.area.width() / static_cast<float>(memory.columns.size());
        const float bottom = y_of(row) + row.height;
        const int height = static_cast<int>(row.height) - 2;
        for (const MemoryRun& run : memory_runs(memory.columns, memory.most, height)) {
            const float x0 = p_.area.left() + step * static_cast<float>(run.first);
            const theme::Color color =
                theme::category_color(static_cast<traces::schema::MemoryCategory>(run.category));
            draw_.AddRectFilled(
                {x0, bottom - static_cast<float>(run.top)},
                {x0 + step * static_cast<float>(run.count), bottom - static_cast<float>(run.bottom)},
                draw::faded(color, run.pale ? 0.45F : 0.9F));
        }
    }

    void counter(const Row& row) {
        ground(row);
        const CounterTrack& counter = p_.tracks.counters[static_cast<std::size_t>(row.track)];
        const double floor = std::min(0.0, counter.least);
        const double span = counter.most - floor;
        if (!(span > 0) || !std::isfinite(span)) return;
        const std::vector<CounterRun>* runs = p_.counters.find(row.track);
        if (runs == nullptr) return;
        const float step = p_.area.width() / static_cast<float>(p_.counters.columns());
        const float bottom = y_of(row) + row.height, room = row.height - 2;
        const auto height = [&](double value) { return static_cast<float>((value - floor) / span) * room; };
        for (const CounterRun& run : *runs) {
            const float x0 = p_.area.left() + step * static_cast<float>(run.first);
            const float x1 = x0 + step * static_cast<float>(run.count);
            const float high = bottom - height(run.highest), low = bottom - height(run.lowest);
            draw_.AddRectFilled({x0, high}, {x1, bottom}, draw::faded(theme::accent(), 0.2F));
            draw_.AddRectFilled({x0, high}, {x1, std::max(high + 1.5F, low)},
                                draw::faded(theme::accent(), 0.8F));
        }
    }
};

void paint_memory(ImDrawList& draw, const TimelinePicture& picture, const Row& row) {
    CurvePainter(draw, picture).memory(row);
}

void paint_counter(ImDrawList& draw, const TimelinePicture& picture, const Row& row) {
    CurvePainter(draw, picture).counter(row);
}

class RowPainter : private Canvas {
  public:
    using Canvas::Canvas;

    void rows(RowLayout::Span span) {
        for (std::size_t i = span.first; i < span.last; ++i) {
            const Row& row = p_.layout.rows[i];
            if (row.kind == Row::Kind::group) heading(row);
            if (row.kind == Row::Kind::memory) paint_memory(draw_, p_, row);
            if (row.kind == Row::Kind::counter) paint_counter(draw_, p_, row);
            if (row.kind == Row::Kind::lane) ground(row);
        }
        steps(span);
        for (std::size_t i = span.first; i < span.last; ++i) {
            if (p_.layout.rows[i].kind == Row::Kind::lane) lane(p_.layout.rows[i]);
        }
    }

    int named_gaps() const { return named_gaps_; }

    void outlines(bool pinned) {
        const model::SelectedEvent selected = p_.of_active ? p_.session.selected : model::SelectedEvent();
        if (p_.hovered != selected) outline(p_.hovered, draw::faded(theme::text(), 0.7F), 1, pinned);
        outline(selected, theme::text(), 2, pinned);
    }

    // The edges of the step window that another panel navigated to.
    void lit_window() {
        if (!p_.lit) return;
        const TimelineArea& a = p_.area;
        for (const std::int64_t time : {p_.lit->from, p_.lit->to}) {
            const float x = std::floor(x_of(time));
            if (x >= a.left() && x < a.max.x)
                draw_.AddRectFilled({x, a.top()}, {x + 1, a.max.y}, theme::accent());
        }
    }

    void outside_limit() {
        if (!p_.limit) return;
        const TimelineArea& a = p_.area;
        const float x0 = std::clamp(x_of(p_.limit->from), a.left(), a.max.x);
        const float x1 = std::clamp(x_of(p_.limit->to), a.left(), a.max.x);
        const ImU32 veil = draw::faded(theme::ground(), 0.62F);
        draw_.AddRectFilled({a.left(), a.top()}, {x0, a.max.y}, veil);
        draw_.AddRectFilled({x1, a.top()}, {a.max.x, a.max.y}, veil);
    }

  private:
    // A collapsed group's heading contains its summary strip, an open one's the device's name.
    void heading(const Row& row) {
        const float y = y_of(row);
        draw_.AddRectFilled({p_.area.left(), y}, {p_.area.max.x, y + row.height}, theme::raised());
        const RowGroup& group = p_.layout.groups[static_cast<std::size_t>(row.group)];
        if (!group.collapsed) {
            if (p_.with_notes)
                put(p_.area.left() + font_ * 0.5F, y + (row.height - font_) / 2, theme::text_dim(),
                    group.note);
        } else if (const FoldedRow* strip = p_.folded.strip_of(group.key)) {
            runs(*strip, y + 2, y + row.height - 2);
        }
    }

    void runs(const FoldedRow& folded, float y0, float y1) {
        const float step = p_.area.width() / static_cast<float>(folded.lane.columns);
        const auto at = [&](int column) { return p_.area.left() + step * static_cast<float>(column); };
        for (const FoldedRun& run : folded.grounds) {
            draw_.AddRectFilled({at(run.first), y0}, {at(run.first + run.count), y1},
                                draw::faded(theme::text(), 0.05F));
        }
        for (const FoldedRun& run : folded.runs) {
            const float height =
                (y1 - y0) * static_cast<float>(run.level) / std::max(1.0F, std::round(y1 - y0));
            const float x0 = at(run.first), x1 = at(run.first + run.count), top = std::max(y0, y1 - height);
            if (run.paint == kArrivalPaint) {
                arrival(x0, x1, top, y1);
            } else {
                draw_.AddRectFilled({x0, top}, {x1, y1}, paint_color(run.paint));
            }
        }
    }

    void lane(const Row& row) {
        const FoldedRow* folded = p_.folded.find(row.track, row.lane);
        if (folded == nullptr) return;
        const Track& track = p_.tracks.tracks[static_cast<std::size_t>(row.track)];
        const Lane& lane = track.lanes[static_cast<std::size_t>(row.lane)];
        const LanePaints& paints =
            p_.paints != nullptr ? p_.paints->of(p_.tracks, row.track, row.lane) : lane.paints();
        const float y0 = y_of(row) + 1, y1 = y_of(row) + row.height - 1;
        runs(*folded, y0, y1);
        for (const Bar& bar : folded->lane.bars)
            bar_and_label(lane, paints.paint(bar.item), bar, y0, y1, track.name(row.lane, bar.item));
        if (track.kind == Track::Kind::stream && p_.waits != nullptr) gaps(lane, folded->lane, y0, y1);
    }

    // The gaps before the bars and strips, and before the first event to the right of the view.
    void gaps(const Lane& lane, const FoldedLane& folded, float y0, float y1) {
        for (const Bar& bar : folded.bars) gap_before(lane, bar.item, y0, y1);
        const float step = p_.area.width() / static_cast<float>(std::max(1, folded.columns));
        int last = -1;
        for (const FoldedPixel& pixel : folded.pixels) {
            if (static_cast<float>(pixel.column - last) * step >= kGapRoom * font_)
                gap_before(lane, pixel.first, y0, y1);
            last = pixel.column;
        }
        const std::size_t next = lane.first_ending_after(p_.view.time(static_cast<double>(p_.area.width())));
        if (next < lane.size() && x_of(lane.start(next)) >= p_.area.max.x) gap_before(lane, next, y0, y1);
    }

    // What each part of a wide gap waits for: a thin line with its name above.
    void gap_before(const Lane& lane, std::size_t item, float y0, float y1) {
        if (item == 0 || item >= lane.size()) return;
        const float room = font_ * kGapRoom;
        const auto in_sight = [&](std::int64_t time) {
            return std::clamp(x_of(time), p_.area.left(), p_.area.max.x);
        };
        if (in_sight(lane.start(item)) - in_sight(lane.end(item - 1)) < room) return;
        const model::SelectedEvent event = lane.event(item);
        if (event.kind != model::EventKind::device) return;
        const NamedGap& gap = p_.gaps.before(*p_.waits, event.index);
        for (std::size_t k = 0; k < gap.parts.size(); ++k) {
            const traces::analysis::Wait& part = gap.parts[k];
            const float x0 = in_sight(part.from), x1 = in_sight(part.to);
            if (x1 - x0 < 2) continue;
            const theme::Color color = theme::wait_color(part.what);
            draw_.AddRectFilled({x0, y1 - 2}, {x1 - 1, y1}, draw::faded(color, 0.8F));
            if (x1 - x0 < room) continue;
            put(x0 + font_ * 0.25F, (y0 + y1 - font_) / 2 - 1, theme::text_dim(),
                draw::fit_text(gap.names[k], x1 - x0 - font_ * 0.5F));
            ++named_gaps_;
            draw::items::place(fmt::format("timeline.gap.{}", event.index), {x0, y0}, {x1, y1}, gap.names[k]);
        }
    }

    // By cause, the part of a collective in which it waits for its last rank. Returns whether that is most of
    // it.
    bool late_part(model::SelectedEvent event, float x0, float x1, float y0, float y1) {
        if (p_.session.color_by != model::ColorBy::cause || p_.waits == nullptr ||
            event.kind != model::EventKind::device)
            return false;
        const traces::analysis::Wait late =
            p_.waits->finder.for_last_rank(static_cast<std::size_t>(event.index));
        if (late.length() <= 0) return false;
        const float from = std::clamp(x_of(late.from), x0, x1), to = std::clamp(x_of(late.to), x0, x1);
        if (to - from < 1) return false;
        draw_.AddRectFilled({from, y0}, {to, y1}, theme::surface());
        arrival(from, to, y0, y1);
        return to - from > (x1 - x0) / 2;
    }

    // `name`: empty: that of the event.
    void bar_and_label(const Lane& lane, Paint paint, const Bar& bar, float y0, float y1,
                       std::string_view name) {
        const float x0 = p_.area.left() + bar.x0, x1 = p_.area.left() + bar.x1;
        // A pixel of gap separates neighbours without an outline.
        const float right = x1 - x0 > 3 ? x1 - 1 : x1;
        const theme::Color color = paint_color(paint);
        if (lane.paint(bar.item) == kArrivalPaint) return arrival(x0, right, y0, y1);
        draw_.AddRectFilled({x0, y0}, {right, y1}, color);
        const bool late = late_part(lane.event(bar.item), x0, right, y0, y1);
        label(lane.event(bar.item), name, x0, right, (y0 + y1 - font_) / 2,
              late ? theme::text() : draw::text_on(color));
    }

    // Nothing is transferred yet: a thin line to where the last rank arrives.
    void arrival(float x0, float x1, float y0, float y1) {
        draw_.AddRectFilled({x0, y0}, {x1, y1}, draw::faded(paint_color(kArrivalPaint), 0.25F));
        draw_.AddRectFilled({x0, std::max(y0, y1 - 3)}, {x1, y1}, paint_color(kArrivalPaint));
    }

    void label(model::SelectedEvent event, std::string_view name, float x0, float x1, float y, ImU32 color) {
        const float room = x1 - x0 - font_ * 0.5F;
        if (room < font_ * 1.5F) return;
        std::string text = name.empty() ? bar_label(p_.trace, event) : std::string(name);
        constexpr std::size_t kMostLetters = 400;  // bytes: more than any screen has room for
        if (text.size() > kMostLetters) text.resize(kMostLetters);
        if (draw::width_of(text) > room) {
            if (room < font_ * 5) return;  // two letters and dots would be useless
            text = draw::fit_text(text, room);
        }
        put(x0 + font_ * 0.25F, y, color, text);
    }

    // --- steps -----------------------------------------------------------------------------------------
    // Lines at the edges of a rank's steps through its rows, from `top` to `bottom` on the screen.
    void step_lines(traces::store::RankIndex rank, float top, float bottom) {
        const std::span<const traces::store::Step> steps = model::steps_of(p_.trace, rank);
        if (!room_for_step_lines(steps)) return;
        float last = -kFar;
        for (const traces::store::Step& step : steps) {
            for (const std::int64_t t : {step.start, step.end}) {
                const float x = std::floor(x_of(t));
                if (x < last + 4 || x < p_.area.left() || x >= p_.area.max.x) continue;
                draw_.AddRectFilled({x, top}, {x + 1, bottom}, draw::faded(theme::text(), 0.16F));
                last = x;
            }
        }
    }

    void steps(RowLayout::Span span) {
        for (std::size_t i = span.first; i < span.last;) {
            const Row& first = p_.layout.rows[i];
            std::size_t end = i;
            while (end < span.last && p_.layout.rows[end].rank == first.rank &&
                   p_.layout.rows[end].kind != Row::Kind::group)
                ++end;
            if (end > i && first.rank.known()) {
                const Row& last = p_.layout.rows[end - 1];
                step_lines(first.rank, y_of(first), y_of(last) + last.height);
            }
            i = std::max(end, i + 1);
        }
    }

    // Lines closer than a letter would look like a pattern.
    bool room_for_step_lines(std::span<const traces::store::Step> steps) const {
        double ns = 0;
        for (const traces::store::Step& step : steps) ns += static_cast<double>(step.end - step.start);
        const auto count = static_cast<double>(steps.size());
        return !steps.empty() && ns / count / p_.view.ns_per_pixel() >= static_cast<double>(font_);
    }

    // --- selection -------------------------------------------------------------------------------------
    void outline(model::SelectedEvent event, ImU32 color, float thickness, bool pinned) {
        const auto place = find_event(p_.trace, p_.tracks, event);
        if (!place) return;
        const Row* row = p_.layout.of_lane(place->track, place->lane);
        if (row == nullptr || row->pinned != pinned) return;
        const EventTime time = time_of(p_.trace, event);
        const float x0 = x_of(time.start), x1 = std::max(x0 + 2, x_of(time.end));
        const float y0 = y_of(*row) + 1, y1 = y_of(*row) + row->height - 1;
        draw_.AddRect({x0 - 0.5F, y0 - 0.5F}, {x1 - 0.5F, y1 + 0.5F}, color, 0, 0, thickness);
    }

    static constexpr float kGapRoom = 5;  // font sizes: the words of a narrower part are left out
    int named_gaps_ = 0;
};

}  // namespace

void paint_rows(ImDrawList& draw, const TimelinePicture& picture) {
    const TimelineArea& a = picture.area;
    RowPainter painter(draw, picture);
    const float pinned = std::min(a.max.y, a.top() + picture.layout.pinned_height);
    draw.PushClipRect({a.left(), pinned}, a.max, true);
    painter.rows(picture.layout.scrolled(a.scroll, a.height()));
    painter.outlines(false);
    draw.PopClipRect();
    draw.PushClipRect({a.left(), a.top()}, a.max, true);
    if (picture.layout.pinned_height > 0) {
        painter.rows(picture.layout.pinned(a.height()));
        painter.outlines(true);
        draw.AddRectFilled({a.left(), pinned - 1}, {a.max.x, pinned}, theme::line());
    }
    painter.outside_limit();
    painter.lit_window();
    draw.PopClipRect();
    draw::items::value("timeline.gaps", fmt::format("{}", painter.named_gaps()));
}

}  // namespace shardscope::viewer::timeline
