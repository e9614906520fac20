// The ruler above the timeline's rows: time, and the steps of the chosen rank. See painter.h.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/lanes/counter_words.h"
#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/model/rank_steps.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/canvas.h"

namespace shardscope::viewer::timeline {
namespace {

constexpr float kStepRow = 1.45F;  // font sizes

class RulerPainter : private Canvas {
  public:
    using Canvas::Canvas;

    void ruler() {
        const TimelineArea& a = p_.area;
        draw_.AddRectFilled(a.min, {a.max.x, a.top()}, theme::raised());
        ruler_ticks();
        ruler_steps();
        draw_.AddRectFilled({a.min.x, a.top() - 1}, {a.max.x, a.top()}, theme::line());
    }

  private:
    void ruler_ticks() {
        const TimelineArea& a = p_.area;
        const int most = std::clamp(static_cast<int>(a.width() / (font_ * 7)), 2, 24);
        const float y = a.min.y + font_ * 0.25F;
        float free_from = a.left();
        for (const draw::Tick& tick :
             make_ticks(static_cast<double>(p_.view.from), static_cast<double>(p_.view.to), most,
                        draw::AxisUnit::nanoseconds)) {
            const float x = std::floor(x_of(static_cast<std::int64_t>(std::llround(tick.value))));
            if (x < a.left() || x >= a.max.x) continue;
            draw_.AddRectFilled({x, a.min.y + font_ * 1.25F}, {x + 1, a.min.y + font_ * 1.55F},
                                theme::text_dim());
            draw_.AddRectFilled({x, a.top()}, {x + 1, a.max.y}, draw::faded(theme::text(), 0.05F));
            const float width = draw::width_of(tick.label);
            const float at = std::clamp(x - width / 2, a.left() + 2, a.max.x - width - 2);
            if (at < free_from) continue;  // a label never touches its neighbour
            put(at, y, theme::text_dim(), tick.label);
            free_from = at + width + font_ * 0.6F;
        }
        put(a.min.x + font_ * 0.5F, y, theme::text_dim(), "Time since start");
    }

    // The two lengths of a step, each with its own word: the duration of its range on the host, and its
    // window, which ends with the device's work (docs/definitions.md).
    void ruler_steps() {
        std::vector<RulerStep> host;
        for (const traces::store::Step& step : model::steps_of(p_.trace, p_.session.rank))
            host.push_back({step.number, {step.start, step.end}});
        const std::size_t rank = p_.session.rank.at();
        const int number = rank < p_.trace.ranks.size() ? p_.trace.ranks[rank].number : 0;
        const float y = p_.area.min.y + font_ * 1.65F;
        if (!host.empty())
            row_of_steps(host, "host step", fmt::format("Host steps, rank {}", number), y,
                         theme::range_color(traces::store::RangeKind::step));
        if (p_.with_windows && !p_.windows.empty())
            row_of_steps(p_.windows, "window", fmt::format("Step windows, rank {}", number),
                         y + font_ * kStepRow, theme::hover(), true);
    }

    void row_of_steps(const std::vector<RulerStep>& steps, const char* word, const std::string& name,
                      float y0, theme::Color color, bool windows = false) {
        const TimelineArea& a = p_.area;
        const float y1 = y0 + font_ * kStepRow - 2;
        std::vector<float> widths;
        widths.reserve(steps.size());
        for (const RulerStep& step : steps) widths.push_back(x_of(step.time.to) - x_of(step.time.from));
        const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
        std::nth_element(widths.begin(), middle, widths.end());
        const StepLabels labels = choose_labels(word, steps.back(), *middle);
        const bool dense = *middle < 4;  // no room for gaps: one band
        std::vector<std::pair<float, std::string>> written;
        float last = -kFar, free_from = a.left();
        for (const RulerStep& step : steps) {
            const float x0 = std::max(a.left(), x_of(step.time.from)),
                        x1 = std::min(a.max.x, x_of(step.time.to));
            if (x1 <= a.left() || x0 >= a.max.x) continue;
            const bool lit = windows && p_.lit == step.time;
            if (x1 >= last + 1) {
                const float from = dense && last >= a.left() ? last : x0, to = dense ? x1 : x1 - 1;
                draw_.AddRectFilled({from, y0}, {std::max(from + 1, to), y1}, lit ? theme::accent() : color);
                last = x1;
            }
            if (draw::items::kept())
                draw::items::place(fmt::format("timeline.{}.{}", word, step.number), {x0, y0}, {x1, y1},
                                   StepLabels{word}.text(step) + (lit ? "  lit" : ""));
            if (step.number % labels.every != 0) continue;
            std::string label = labels.text(step);
            for (int form = labels.form;
                 labels.every == 1 && form < 2 && draw::width_of(label) + 4 > x1 - x0;) {
                label = StepLabels{word, ++form}.text(step);  // a step much shorter than the others
            }
            const float width = draw::width_of(label), at = (x0 + x1 - width) / 2;
            const bool fits =
                labels.every > 1 ? at >= free_from && at + width <= a.max.x : width + 4 <= x1 - x0;
            if (!fits) continue;
            written.emplace_back(at, label);
            free_from = at + width + font_ * 0.6F;
        }
        // After the boxes: the label of every tenth step may extend over its neighbours.
        const theme::Color ink = draw::text_on(color);
        for (const auto& [at, label] : written) put(at, (y0 + y1 - font_) / 2, ink, label);
        put(a.min.x + font_ * 0.5F, (y0 + y1 - font_) / 2, theme::text_dim(), name);
    }

    // The form of label that all steps share: word, number and time; word and number; number alone; or the
    // number of only every n-th step.
    struct StepLabels {
        const char* word;
        int form = 0;
        std::int64_t every = 1;
        std::string text(const RulerStep& step) const {
            if (form == 2) return fmt::format("{}", step.number);
            if (form == 1) return fmt::format("{} {}", word, step.number);
            return fmt::format("{} {}  {}", word, step.number,
                               draw::format_duration(static_cast<double>(step.time.length())));
        }
    };
    StepLabels choose_labels(const char* word, const RulerStep& longest, float room) const {
        StepLabels labels{word};
        while (labels.form < 2 && draw::width_of(labels.text(longest)) + font_ * 0.6F > room) ++labels.form;
        if (labels.form < 2 || room <= 0) return labels;
        const float need = draw::width_of(labels.text(longest)) + font_ * 0.6F;
        if (need > room)
            labels.every = static_cast<std::int64_t>(draw::nice_step(static_cast<double>(need / room)));
        return labels;
    }
};

}  // namespace

void paint_ruler(ImDrawList& draw, const TimelinePicture& picture) {
    RulerPainter(draw, picture).ruler();
}

namespace {

class NamePainter : private Canvas {
  public:
    using Canvas::Canvas;

    void names(RowLayout::Span span) {
        for (std::size_t i = span.first; i < span.last; ++i) {
            const Row& row = p_.layout.rows[i];
            if (row.kind == Row::Kind::group) group_name(row);
            if (row.kind == Row::Kind::memory) memory_name(row);
            if (row.kind == Row::Kind::counter) counter_name(row);
            if (row.kind == Row::Kind::lane && row.first_of_track) track_name(row);
        }
    }

  private:
    float indent() const { return p_.area.min.x + font_ * 1.3F; }
    float room() const { return p_.area.names - font_ * 1.8F; }

    void group_name(const Row& row) {
        const float y = y_of(row), x = p_.area.min.x;
        const RowGroup& group = p_.layout.groups[static_cast<std::size_t>(row.group)];
        draw_.AddRectFilled({x, y}, {p_.area.left(), y + row.height}, theme::raised());
        const float s = font_ * 0.22F, cx = x + font_ * 0.7F, cy = y + row.height / 2;
        if (group.collapsed) {
            draw_.AddTriangleFilled({cx - s * 0.6F, cy - s}, {cx + s * 0.8F, cy}, {cx - s * 0.6F, cy + s},
                                    theme::text_dim());
        } else {
            draw_.AddTriangleFilled({cx - s, cy - s * 0.6F}, {cx + s, cy - s * 0.6F}, {cx, cy + s * 0.8F},
                                    theme::text_dim());
        }
        const bool chosen = group.rank == p_.session.rank;
        put(indent(), cy - font_ / 2, chosen ? theme::accent() : theme::text(),
            draw::fit_text(group.label, room()));
    }

    // On two lines if the row has room for them.
    void two_lines(const Row& row, const std::string& name, const std::string& what) {
        const float y = y_of(row), middle = y + row.height / 2;
        pin(row, y);
        if (row.height < font_ * 2.2F) {
            put(indent(), middle - font_ / 2, theme::text(), draw::fit_text(name, room()));
            return;
        }
        put(indent(), middle - font_ * 1.1F, theme::text(), draw::fit_text(name, room()));
        put(indent(), middle + font_ * 0.1F, theme::text_dim(), draw::fit_text(what, room()));
    }

    const std::string& label(const Row& row) const {
        return p_.layout.entries[static_cast<std::size_t>(row.entry)].label;
    }

    void memory_name(const Row& row) {
        const auto it = p_.memory.find(row.rank);
        two_lines(row, label(row),
                  it == p_.memory.end() ? "..." : "max " + draw::format_size(it->second.most));
    }

    void counter_name(const Row& row) {
        const CounterTrack& counter = p_.tracks.counters[static_cast<std::size_t>(row.track)];
        const std::string_view unit = traces::lanes::counter_words(p_.trace.strings[counter.name]).unit;
        two_lines(row, label(row), "max " + draw::format_amount(counter.most, unit));
    }

    void track_name(const Row& row) {
        const Track& track = p_.tracks.tracks[static_cast<std::size_t>(row.track)];
        const float y = y_of(row);
        pin(row, y);
        put(indent(), y + (row.height - font_) / 2, theme::text(), draw::fit_text(label(row), room()));
        if (track.lanes.size() < 2 || track.label == what_is(track)) return;
        put(indent(), y + row.height + (row.height - font_) / 2, theme::text_dim(),
            draw::fit_text(what_is(track), room()));
    }

    std::string what_is(const Track& track) const {
        switch (track.kind) {
            case Track::Kind::collectives:
                return "collectives";
            case Track::Kind::thread:
                return fmt::format("thread {}", thread_number(track));
            case Track::Kind::stream:
                return "stream";
            default:
                return {};
        }
    }

    std::int64_t thread_number(const Track& track) const {
        return p_.trace.threads[static_cast<std::size_t>(track.thread)].global_tid & 0xFFFFFF;
    }

    // The dot of a pinned row.
    void pin(const Row& row, float y) {
        if (row.pinned)
            draw_.AddCircleFilled({p_.area.min.x + font_ * 0.7F, y + font_ * 0.7F}, font_ * 0.18F,
                                  theme::accent());
    }
};

}  // namespace

void paint_names(ImDrawList& draw, const TimelinePicture& picture) {
    const TimelineArea& a = picture.area;
    NamePainter painter(draw, picture);
    const float pinned = std::min(a.max.y, a.top() + picture.layout.pinned_height);
    draw.PushClipRect({a.min.x, pinned}, {a.left(), a.max.y}, true);
    painter.names(picture.layout.scrolled(a.scroll, a.height()));
    draw.PopClipRect();
    if (picture.layout.pinned_height > 0) {
        draw.PushClipRect({a.min.x, a.top()}, {a.left(), pinned}, true);
        painter.names(picture.layout.pinned(a.height()));
        draw.PopClipRect();
        draw.AddRectFilled({a.min.x, pinned - 1}, {a.left(), pinned}, theme::line());
    }
    draw.AddRectFilled({a.left() - 1, a.min.y}, {a.left(), a.max.y}, theme::line());
}

}  // namespace shardscope::viewer::timeline
