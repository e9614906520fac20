// See memory_fold.h.
#include "viewer/panels/memory/memory_fold.h"

#include <algorithm>

namespace shardscope::viewer {

LineCurve line_curve(traces::ByteCurve curve) {
    LineCurve line;
    line.index = CurveIndex<std::int64_t>(
        curve.size(), [&](std::size_t i) { return curve.time[i]; },
        [&](std::size_t i) { return curve.bytes[i]; });
    line.curve = std::move(curve);
    return line;
}

std::vector<LineColumn> fold_line(const LineCurve& line, std::int64_t from, std::int64_t to, int columns,
                                  std::int64_t shift) {
    if (columns <= 0 || to <= from) return {};
    std::vector<LineColumn> folded(static_cast<std::size_t>(columns));
    const std::vector<std::int64_t>& bytes = line.curve.bytes;
    const auto value = [&](std::size_t i) { return bytes[i]; };
    const auto take = [&](int i, std::size_t first, std::size_t last, bool carried) {
        const std::int64_t before = first > 0 ? bytes[first - 1] : 0;
        LineColumn column{before, before, before};
        if (first < last) {
            const auto found = line.index.of(first, last, value);
            column.lowest = carried ? std::min(before, found.lowest) : found.lowest;
            column.highest = carried ? std::max(before, found.highest) : found.highest;
            if (!carried) column.first = bytes[first];
        }
        folded[static_cast<std::size_t>(i)] = column;
    };
    walk_columns(
        line.index, from - shift, to - shift, columns, [&](std::size_t i) { return line.curve.time[i]; },
        take);
    return folded;
}

std::int64_t line_at(const LineCurve& line, std::int64_t time) {
    const std::vector<std::int64_t>& times = line.curve.time;
    const auto after = std::upper_bound(times.begin(), times.end(), time);
    return after == times.begin() ? 0 : line.curve.bytes[static_cast<std::size_t>(after - times.begin()) - 1];
}

std::int64_t line_most(const LineCurve& line, std::int64_t from, std::int64_t to) {
    const auto columns = fold_line(line, from, to, 1);
    return columns.empty() ? 0 : columns.front().highest;
}

}  // namespace shardscope::viewer
