// The ruler above the timeline's rows: time, and the steps of the chosen rank. See painter.h.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/model/rank_steps.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/canvas.h"

namespace shardscope::viewer {
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
            put(at, y, theme::text_dim(), tick.label);
            free_from = at + width + font_ * 0.6F;
        }
        put(a.min.x + font_ * 0.5F, y, theme::text_dim(), "Time since start");
    }

    // The two lengths of a step, each with its own word: the duration of its range on the host, and its
    // window, which ends with the device's work (docs/definitions.md).
    void ruler_steps() {
        std::vector<RulerStep> host;
        for (const traces::Step& step : steps_of(p_.trace, p_.session.rank))
            host.push_back({step.number, {step.start, step.end}});
        const auto rank = static_cast<std::size_t>(p_.session.rank);
        const int number = rank < p_.trace.ranks.size() ? p_.trace.ranks[rank].number : 0;
        const float y = p_.area.min.y + font_ * 1.65F;
        if (!host.empty())
            row_of_steps(host, "host step", fmt::format("Host steps, rank {}", number), y,
                         range_color(traces::RangeKind::step));
        if (p_.with_windows && !p_.windows.empty())
            row_of_steps(p_.windows, "window", fmt::format("Step windows, rank {}", number),
                         y + font_ * kStepRow, theme::hover(), true);
    }

    void row_of_steps(const std::vector<RulerStep>& steps, const char* word, const std::string& name,
                      float y0, Color color, bool windows = false) {
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
            if (items::kept())
                items::place(fmt::format("timeline.{}.{}", word, step.number), {x0, y0}, {x1, y1},
                             StepLabels{word}.text(step) + (lit ? "  lit" : ""));
            if (step.number % labels.every != 0) continue;
            std::string label = labels.text(step);
            for (int form = labels.form; labels.every == 1 && form < 2 && width_of(label) + 4 > x1 - x0;) {
                label = StepLabels{word, ++form}.text(step);  // a step much shorter than the others
            }
            const float width = width_of(label), at = (x0 + x1 - width) / 2;
            const bool fits =
                labels.every > 1 ? at >= free_from && at + width <= a.max.x : width + 4 <= x1 - x0;
            if (!fits) continue;
            written.emplace_back(at, label);
            free_from = at + width + font_ * 0.6F;
        }
        // After the boxes: the label of every tenth step may extend over its neighbours.
        const Color ink = text_on(color);
        for (const auto& [at, label] : written) put(at, (y0 + y1 - font_) / 2, ink, label);
        put(a.min.x + font_ * 0.5F, (y0 + y1 - font_) / 2, theme::text_dim(), name);
    }

    // All steps have the same form of label: with their time, with the word, with the number, or only every
    // n-th.
    struct StepLabels {
        const char* word;
        int form = 0;
        std::int64_t every = 1;
        std::string text(const RulerStep& step) const {
            if (form == 2) return fmt::format("{}", step.number);
            if (form == 1) return fmt::format("{} {}", word, step.number);
            return fmt::format("{} {}  {}", word, step.number,
                               format_duration(static_cast<double>(step.time.length())));
        }
    };
    StepLabels choose_labels(const char* word, const RulerStep& longest, float room) const {
        StepLabels labels{word};
        while (labels.form < 2 && width_of(labels.text(longest)) + font_ * 0.6F > room) ++labels.form;
        if (labels.form < 2 || room <= 0) return labels;
        const float need = width_of(labels.text(longest)) + font_ * 0.6F;
        if (need > room)
            labels.every = static_cast<std::int64_t>(nice_step(static_cast<double>(need / room)));
        return labels;
    }
};

}  // namespace

void paint_ruler(ImDrawList& draw, const TimelinePicture& picture) {
    RulerPainter(draw, picture).ruler();
}

}  // namespace shardscope::viewer
