// See painter.h. No clip rectangle an item: one for the rows, one for their names; labels are shortened to
// fit.
#include "viewer/timeline/painter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "viewer/app/theme.h"
#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/timeline/details.h"

namespace shardscope::viewer {
namespace {

constexpr float kFar = 1e5F;  // pixels: beyond this a screen coordinate says only "outside"

Color paint_color(Paint paint) {
    if (paint < kFirstRangePaint) return kind_color(static_cast<traces::DeviceKind>(paint));
    if (paint < kRuntimePaint) return range_color(static_cast<traces::RangeKind>(paint - kFirstRangePaint));
    return runtime_color();
}

float width_of(const std::string& text) {
    return ImGui::CalcTextSize(text.c_str()).x;
}

void put(ImDrawList& draw, float x, float y, ImU32 color, const std::string& text) {
    draw.AddText({std::floor(x), std::floor(y)}, color, text.c_str());
}

class Painter {
  public:
    Painter(ImDrawList& draw, const TimelinePicture& picture)
        : draw_(draw), p_(picture), font_(ImGui::GetFontSize()) {}

    float x_of(std::int64_t time) const {
        const double x = static_cast<double>(p_.area.left()) + p_.view.pixel(time);
        return static_cast<float>(std::clamp(x, -static_cast<double>(kFar), static_cast<double>(kFar)));
    }
    float y_of(const Row& row) const { return std::floor(p_.area.top() + row.y - p_.area.scroll); }

    void rows() {
        const auto span = p_.layout.between(p_.area.scroll, p_.area.scroll + p_.area.height());
        for (std::size_t i = span.first; i < span.last; ++i) {
            const Row& row = p_.layout.rows[i];
            if (row.kind == Row::Kind::rank) rank_heading(row);
            if (row.kind == Row::Kind::memory) memory_row(row);
            if (row.kind == Row::Kind::lane) lane_ground(row);
        }
        steps();
        for (std::size_t i = span.first; i < span.last; ++i) {
            const Row& row = p_.layout.rows[i];
            if (row.kind == Row::Kind::lane) lane(row);
        }
        outside_limit();
        for (const SelectedEvent& event : p_.related) outline(event, faded(theme::accent(), 0.9F), 1.5F);
        if (p_.hovered != p_.session.selected) outline(p_.hovered, faded(theme::text(), 0.7F), 1);
        outline(p_.session.selected, theme::text(), 2);
        for (const SelectedEvent& event : p_.launched) arrow(p_.launch, event);
    }

    void names() {
        const auto span = p_.layout.between(p_.area.scroll, p_.area.scroll + p_.area.height());
        for (std::size_t i = span.first; i < span.last; ++i) {
            const Row& row = p_.layout.rows[i];
            if (row.kind == Row::Kind::rank) rank_name(row);
            if (row.kind == Row::Kind::memory) memory_name(row);
            if (row.kind == Row::Kind::lane && row.first_of_track) track_name(row);
        }
    }

    void ruler() {
        const TimelineArea& a = p_.area;
        draw_.AddRectFilled(a.min, {a.max.x, a.top()}, theme::raised());
        ruler_ticks();
        ruler_steps();
        draw_.AddRectFilled({a.min.x, a.top() - 1}, {a.max.x, a.top()}, theme::line());
    }

  private:
    // --- grounds and names -----------------------------------------------------------------------------
    void rank_heading(const Row& row) {
        const float y = y_of(row);
        draw_.AddRectFilled({p_.area.left(), y}, {p_.area.max.x, y + row.height}, theme::raised());
    }

    void lane_ground(const Row& row) {
        if (!row.first_of_track) return;
        const Track& track = p_.tracks.tracks[static_cast<std::size_t>(row.track)];
        const float y = y_of(row);
        const float height = row.height * static_cast<float>(track.lanes.size());
        draw_.AddRectFilled({p_.area.left(), y}, {p_.area.max.x, y + height}, faded(theme::text(), 0.025F));
    }

    void rank_name(const Row& row) {
        const float y = y_of(row), x = p_.area.min.x;
        draw_.AddRectFilled({x, y}, {p_.area.left(), y + row.height}, theme::raised());
        const bool open = !p_.folded_ranks.contains(row.rank);
        const float s = font_ * 0.22F, cx = x + font_ * 0.7F, cy = y + row.height / 2;
        if (open) {
            draw_.AddTriangleFilled({cx - s, cy - s * 0.6F}, {cx + s, cy - s * 0.6F}, {cx, cy + s * 0.8F},
                                    theme::text_dim());
        } else {
            draw_.AddTriangleFilled({cx - s * 0.6F, cy - s}, {cx + s * 0.8F, cy}, {cx - s * 0.6F, cy + s},
                                    theme::text_dim());
        }
        const bool known = row.rank >= 0;
        const auto index = static_cast<std::size_t>(row.rank);
        const std::string name =
            known ? fmt::format("Rank {}", p_.trace.ranks[index].number) : "Other threads";
        const ImU32 ink = known && row.rank == p_.session.rank ? theme::accent() : theme::text();
        put(draw_, x + font_ * 1.3F, cy - font_ / 2, ink, name);
        // The device's name stands at the left of the heading's line, where there is room for it.
        if (known)
            put(draw_, p_.area.left() + font_ * 0.5F, cy - font_ / 2, theme::text_dim(),
                p_.trace.ranks[index].device_name);
    }

    void track_name(const Row& row) {
        const Track& track = p_.tracks.tracks[static_cast<std::size_t>(row.track)];
        const float room = p_.area.names - font_ * 2.2F;
        put(draw_, p_.area.min.x + font_ * 1.3F, y_of(row) + (row.height - font_) / 2, theme::text(),
            fit_text(track.label, room));
        if (track.lanes.size() < 2) return;
        const std::string what = track.kind == Track::Kind::thread ? "host thread" : "stream";
        put(draw_, p_.area.min.x + font_ * 1.3F, y_of(row) + row.height + (row.height - font_) / 2,
            theme::text_dim(), what);
    }

    void memory_name(const Row& row) {
        const auto it = p_.memory.find(row.rank);
        const float x = p_.area.min.x + font_ * 1.3F, y = y_of(row);
        put(draw_, x, y + row.height / 2 - font_ * 1.1F, theme::text(), "allocated");
        const std::string most = it == p_.memory.end() ? "..." : "max " + format_size(it->second.most);
        put(draw_, x, y + row.height / 2 + font_ * 0.1F, theme::text_dim(), most);
    }

    // --- what happened ---------------------------------------------------------------------------------
    void memory_row(const Row& row) {
        const float y = y_of(row), bottom = y + row.height;
        draw_.AddRectFilled({p_.area.left(), y}, {p_.area.max.x, bottom}, faded(theme::text(), 0.025F));
        const auto it = p_.memory.find(row.rank);
        if (it == p_.memory.end() || it->second.most <= 0 || it->second.columns.empty()) return;
        const MemoryRow& memory = it->second;
        const float scale = (row.height - 2) / static_cast<float>(memory.most);
        const float step = p_.area.width() / static_cast<float>(memory.columns.size());
        for (const ColumnRun& run : equal_runs(memory.columns)) {
            const FoldedColumn& column = memory.columns[static_cast<std::size_t>(run.first)];
            if (column.highest <= 0) continue;
            const float x0 = p_.area.left() + step * static_cast<float>(run.first);
            const float x1 = x0 + step * static_cast<float>(run.count);
            const float high = bottom - static_cast<float>(column.highest) * scale;
            const float low = bottom - static_cast<float>(column.lowest) * scale;
            draw_.AddRectFilled({x0, high}, {x1, bottom}, faded(theme::accent(), 0.28F));
            // The line that the eye follows: from the column's lowest to its highest.
            draw_.AddRectFilled({x0, high}, {x1, std::max(high + 1.5F, low)}, faded(theme::accent(), 0.75F));
        }
    }

    void lane(const Row& row) {
        const FoldedRow* folded = p_.folded.find(row.track, row.lane);
        if (folded == nullptr) return;
        const Lane& lane =
            p_.tracks.tracks[static_cast<std::size_t>(row.track)].lanes[static_cast<std::size_t>(row.lane)];
        const float y0 = y_of(row) + 1, y1 = y_of(row) + row.height - 1;
        const float left = p_.area.left();
        const float step = p_.area.width() / static_cast<float>(folded->lane.columns);
        const auto from = [&](const StripRun& run) { return left + step * static_cast<float>(run.first); };
        const auto to = [&](const StripRun& run) {
            return left + step * static_cast<float>(run.first + run.count);
        };
        for (const StripRun& run : folded->grounds) {
            draw_.AddRectFilled({from(run), y0}, {to(run), y1}, faded(theme::text(), 0.05F));
        }
        for (const StripRun& run : folded->runs) {
            const float height =
                (y1 - y0) * static_cast<float>(run.level) / std::max(1.0F, std::round(y1 - y0));
            draw_.AddRectFilled({from(run), y1 - height}, {to(run), y1}, paint_color(run.paint));
        }
        for (const Bar& bar : folded->lane.bars) bar_and_label(lane, bar, y0, y1);
    }

    void bar_and_label(const Lane& lane, const Bar& bar, float y0, float y1) {
        const float x0 = p_.area.left() + bar.x0, x1 = p_.area.left() + bar.x1;
        // A pixel of gap tells neighbours apart without an outline.
        const float right = x1 - x0 > 3 ? x1 - 1 : x1;
        const Color color = paint_color(lane.paint(bar.item));
        draw_.AddRectFilled({x0, y0}, {right, y1}, color);
        const float room = right - x0 - font_ * 0.5F;
        if (room < font_ * 1.5F) return;
        std::string label = bar_label(p_.trace, lane.event(bar.item));
        if (width_of(label) > room) {
            if (room < font_ * 5) return;  // two letters and dots say nothing
            label = fit_text(label, room);
        }
        put(draw_, x0 + font_ * 0.25F, (y0 + y1 - font_) / 2, text_on(color), label);
    }

    void steps() {
        const auto& all = p_.trace.steps;
        for (const Row& head : p_.layout.rows) {
            if (head.kind != Row::Kind::rank || head.rank < 0 || p_.folded_ranks.contains(head.rank))
                continue;
            const float top = y_of(head) + head.height;
            const float bottom = bottom_of(head.rank);
            if (bottom < p_.area.top() || top > p_.area.max.y) continue;
            if (!room_for_step_lines(head.rank)) continue;
            float last = -kFar;
            for (const traces::Step& step : all) {
                if (step.rank != head.rank) continue;
                for (const std::int64_t t : {step.start, step.end}) {
                    const float x = std::floor(x_of(t));
                    if (x < last + 4 || x < p_.area.left() || x >= p_.area.max.x) continue;
                    draw_.AddRectFilled({x, top}, {x + 1, bottom}, faded(theme::text(), 0.16F));
                    last = x;
                }
            }
        }
    }

    // Lines closer than a letter would be a pattern and no marks.
    bool room_for_step_lines(int rank) const {
        double count = 0, ns = 0;
        for (const traces::Step& step : p_.trace.steps) {
            if (step.rank != rank) continue;
            count += 1;
            ns += static_cast<double>(step.end - step.start);
        }
        return count > 0 && ns / count / p_.view.ns_per_pixel() >= static_cast<double>(font_);
    }

    float bottom_of(int rank) const {
        float bottom = 0;
        for (const Row& row : p_.layout.rows) {
            if (row.rank == rank) bottom = y_of(row) + row.height;
        }
        return bottom;
    }

    void outside_limit() {
        if (!p_.limit) return;
        const TimelineArea& a = p_.area;
        const float x0 = std::clamp(x_of(p_.limit->from), a.left(), a.max.x);
        const float x1 = std::clamp(x_of(p_.limit->to), a.left(), a.max.x);
        const ImU32 veil = faded(theme::ground(), 0.62F);
        draw_.AddRectFilled({a.left(), a.top()}, {x0, a.max.y}, veil);
        draw_.AddRectFilled({x1, a.top()}, {a.max.x, a.max.y}, veil);
    }

    // --- selection -------------------------------------------------------------------------------------
    struct Box {
        float x0, x1, y0, y1;
    };
    std::optional<Box> box_of(SelectedEvent event) const {
        const auto place = find_event(p_.trace, p_.tracks, event);
        if (!place) return std::nullopt;
        const Row* row = p_.layout.of_lane(place->track, place->lane);
        if (row == nullptr) return std::nullopt;
        const EventTime time = time_of(p_.trace, event);
        const float x0 = x_of(time.start);
        return Box{x0, std::max(x0 + 2, x_of(time.end)), y_of(*row) + 1, y_of(*row) + row->height - 1};
    }

    void outline(SelectedEvent event, ImU32 color, float thickness) {
        const auto box = box_of(event);
        if (box)
            draw_.AddRect({box->x0 - 0.5F, box->y0 - 0.5F}, {box->x1 - 0.5F, box->y1 + 0.5F}, color, 0, 0,
                          thickness);
    }

    void arrow(SelectedEvent call, SelectedEvent event) {
        const auto from = box_of(call), to = box_of(event);
        if (!from || !to) return;
        const ImVec2 a{from->x1, (from->y0 + from->y1) / 2}, b{to->x0, (to->y0 + to->y1) / 2};
        const float bend = std::clamp(std::abs(b.x - a.x) / 2, font_ * 1.5F, font_ * 6);
        const float head = font_ * 0.4F;
        draw_.AddBezierCubic(a, {a.x + bend, a.y}, {b.x - bend, b.y}, {b.x - head, b.y}, theme::peak(), 1.5F,
                             32);
        draw_.AddTriangleFilled({b.x - head * 1.3F, b.y - head * 0.6F}, b,
                                {b.x - head * 1.3F, b.y + head * 0.6F}, theme::peak());
    }

    // --- ruler -----------------------------------------------------------------------------------------
    void ruler_ticks() {
        const TimelineArea& a = p_.area;
        const int most = std::clamp(static_cast<int>(a.width() / (font_ * 7)), 2, 24);
        const float y = a.min.y + font_ * 0.25F;
        float free_from = a.left();
        for (const Tick& tick : make_ticks(static_cast<double>(p_.view.from), static_cast<double>(p_.view.to),
                                           most, AxisUnit::nanoseconds)) {
            const float x = std::floor(x_of(static_cast<std::int64_t>(std::llround(tick.value))));
            if (x < a.left() || x >= a.max.x) continue;
            draw_.AddRectFilled({x, a.min.y + font_ * 1.25F}, {x + 1, a.min.y + font_ * 1.55F},
                                theme::text_dim());
            draw_.AddRectFilled({x, a.top()}, {x + 1, a.max.y}, faded(theme::text(), 0.05F));
            const float width = width_of(tick.label);
            const float at = std::clamp(x - width / 2, a.left() + 2, a.max.x - width - 2);
            if (at < free_from) continue;  // a label never touches its neighbour
            put(draw_, at, y, theme::text_dim(), tick.label);
            free_from = at + width + font_ * 0.6F;
        }
        put(draw_, a.min.x + font_ * 0.5F, y, theme::text_dim(), "Time since start");
    }

    void ruler_steps() {
        const TimelineArea& a = p_.area;
        const float y0 = a.min.y + font_ * 1.65F, y1 = a.top() - 2;
        std::vector<const traces::Step*> mine;
        std::vector<float> widths;
        for (const traces::Step& step : p_.trace.steps) {
            if (step.rank != p_.session.rank) continue;
            mine.push_back(&step);
            widths.push_back(x_of(step.end) - x_of(step.start));
        }
        if (mine.empty()) return;
        std::nth_element(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2),
                         widths.end());
        const StepLabels labels = choose_labels(*mine.back(), widths[widths.size() / 2]);
        const bool dense = widths[widths.size() / 2] < 4;  // no room for gaps: one band
        float last = -kFar, free_from = a.left();
        for (const traces::Step* step : mine) {
            const float x0 = std::max(a.left(), x_of(step->start)), x1 = std::min(a.max.x, x_of(step->end));
            if (x1 <= a.left() || x0 >= a.max.x) continue;
            if (x1 >= last + 1) {
                const float from = dense && last >= a.left() ? last : x0, to = dense ? x1 : x1 - 1;
                draw_.AddRectFilled({from, y0}, {std::max(from + 1, to), y1},
                                    range_color(traces::RangeKind::step));
                last = x1;
            }
            if (step->number % labels.every != 0) continue;
            std::string label = labels.text(*step);
            for (int form = labels.form; labels.every == 1 && form < 2 && width_of(label) + 4 > x1 - x0;) {
                label = StepLabels{++form}.text(*step);  // a step much shorter than the others
            }
            const float width = width_of(label), at = (x0 + x1 - width) / 2;
            const bool fits =
                labels.every > 1 ? at >= free_from && at + width <= a.max.x : width + 4 <= x1 - x0;
            if (!fits) continue;
            step_labels_.push_back({at, label});
            free_from = at + width + font_ * 0.6F;
        }
        // After the boxes: the label of every tenth step may reach over its neighbours.
        for (const auto& [at, label] : step_labels_)
            put(draw_, at, (y0 + y1 - font_) / 2, theme::text(), label);
        const auto rank = static_cast<std::size_t>(p_.session.rank);
        const int number = rank < p_.trace.ranks.size() ? p_.trace.ranks[rank].number : 0;
        put(draw_, a.min.x + font_ * 0.5F, (y0 + y1 - font_) / 2, theme::text_dim(),
            fmt::format("Steps of rank {}", number));
    }

    // All steps are labelled alike: with their time, with "step", with the number, or only every so many.
    struct StepLabels {
        int form = 0;
        std::int64_t every = 1;
        std::string text(const traces::Step& step) const {
            if (form == 2) return fmt::format("{}", step.number);
            if (form == 1) return fmt::format("step {}", step.number);
            return fmt::format("step {}  {}", step.number,
                               format_duration(static_cast<double>(step.end - step.start)));
        }
    };
    StepLabels choose_labels(const traces::Step& longest, float room) const {
        StepLabels labels;
        while (labels.form < 2 && width_of(labels.text(longest)) + font_ * 0.6F > room) ++labels.form;
        if (labels.form < 2 || room <= 0) return labels;
        const float need = width_of(labels.text(longest)) + font_ * 0.6F;
        if (need > room)
            labels.every = static_cast<std::int64_t>(nice_step(static_cast<double>(need / room)));
        return labels;
    }

    std::vector<std::pair<float, std::string>> step_labels_;
    ImDrawList& draw_;
    const TimelinePicture& p_;
    float font_;
};

}  // namespace

void paint_rows(ImDrawList& draw, const TimelinePicture& picture) {
    const TimelineArea& a = picture.area;
    draw.PushClipRect({a.left(), a.top()}, a.max, true);
    Painter(draw, picture).rows();
    draw.PopClipRect();
}

void paint_names(ImDrawList& draw, const TimelinePicture& picture) {
    const TimelineArea& a = picture.area;
    draw.PushClipRect({a.min.x, a.top()}, a.max, true);
    Painter(draw, picture).names();
    draw.PopClipRect();
    draw.AddRectFilled({a.left() - 1, a.min.y}, {a.left(), a.max.y}, theme::line());
}

void paint_ruler(ImDrawList& draw, const TimelinePicture& picture) {
    Painter(draw, picture).ruler();
}

}  // namespace shardscope::viewer
