// See curve_painter.h.
#include "viewer/timeline/curve_painter.h"

#include "viewer/draw/chart.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/canvas.h"
#include "viewer/timeline/counter_fold.h"

namespace shardscope::viewer {
namespace {

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
            const Color color = category_color(static_cast<traces::MemoryCategory>(run.category));
            draw_.AddRectFilled(
                {x0, bottom - static_cast<float>(run.top)},
                {x0 + step * static_cast<float>(run.count), bottom - static_cast<float>(run.bottom)},
                faded(color, run.pale ? 0.45F : 0.9F));
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
            draw_.AddRectFilled({x0, high}, {x1, bottom}, faded(theme::accent(), 0.2F));
            draw_.AddRectFilled({x0, high}, {x1, std::max(high + 1.5F, low)}, faded(theme::accent(), 0.8F));
        }
    }

  private:
    void ground(const Row& row) {
        const float y = y_of(row);
        draw_.AddRectFilled({p_.area.left(), y}, {p_.area.max.x, y + row.height},
                            faded(theme::text(), 0.025F));
    }
};

}  // namespace

void paint_memory(ImDrawList& draw, const TimelinePicture& picture, const Row& row) {
    CurvePainter(draw, picture).memory(row);
}

void paint_counter(ImDrawList& draw, const TimelinePicture& picture, const Row& row) {
    CurvePainter(draw, picture).counter(row);
}

}  // namespace shardscope::viewer
