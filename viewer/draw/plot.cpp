// See plot.h.
#include "viewer/draw/plot.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "traces/schema/sort_rows.h"

namespace shardscope::viewer::draw {

std::vector<PlotColumn> fold_plot(std::span<const PlotPoint> points, const PlotRange& range, int columns) {
    std::vector<PlotPoint> sorted(points.begin(), points.end());
    traces::schema::sort_rows(sorted, [](const auto& a, const auto& b) { return a.x < b.x; });
    std::vector<PlotColumn> folded;
    const double width = range.x_high - range.x_low;
    bool broken = false;
    for (const PlotPoint& point : sorted) {
        if (std::isnan(point.y)) {
            broken = true;
            continue;
        }
        const bool apart = std::exchange(broken, false) && !folded.empty();
        const double share = width > 0 ? (point.x - range.x_low) / width : 0;
        const int at = std::clamp(static_cast<int>(share * columns), 0, std::max(0, columns - 1));
        if (folded.empty() || folded.back().column != at) {
            folded.push_back({at, point.y, point.y, point.y, point.y, apart});
            continue;
        }
        PlotColumn& column = folded.back();
        column.lowest = std::min(column.lowest, point.y);
        column.highest = std::max(column.highest, point.y);
        column.last = point.y;
    }
    return folded;
}

}  // namespace shardscope::viewer::draw
