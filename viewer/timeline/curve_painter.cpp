// See curve_painter.h.
#include "viewer/timeline/curve_painter.h"

#include "viewer/app/theme.h"
#include "viewer/draw/chart.h"
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
        const float scale = (row.height - 2) / static_cast<float>(memory.most);
        const float step = p_.area.width() / static_cast<float>(memory.columns.size());
        for (const ColumnRun& run : equal_runs(memory.columns)) {
            const FoldedColumn& column = memory.columns[static_cast<std::size_t>(run.first)];
            if (column.highest <= 0) continue;
            const float x0 = p_.area.left() + step * static_cast<float>(run.first);
            stack(column, x0, x0 + step * static_cast<float>(run.count), y_of(row) + row.height, scale);
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

    // The categories at the column's highest moment, the largest total at the top; pale above its lowest.
    void stack(const FoldedColumn& column, float x0, float x1, float bottom, float scale) {
        const float lowest = bottom - static_cast<float>(column.lowest) * scale;
        float y = bottom;
        for (std::size_t c = 0; c < column.at_highest.size(); ++c) {
            if (column.at_highest[c] <= 0) continue;
            const Color color = category_color(static_cast<traces::MemoryCategory>(c));
            const float top = y - static_cast<float>(column.at_highest[c]) * scale;
            if (y > lowest) draw_.AddRectFilled({x0, std::max(top, lowest)}, {x1, y}, faded(color, 0.9F));
            if (top < lowest - 0.5F)
                draw_.AddRectFilled({x0, top}, {x1, std::min(y, lowest)}, faded(color, 0.45F));
            y = top;
        }
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
