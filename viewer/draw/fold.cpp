// See fold.h.
#include "viewer/draw/fold.h"

#include <algorithm>
#include <utility>

namespace shardscope::viewer::draw {

using traces::analysis::MemoryPoint;

const MemoryPoint* point_at(std::span<const MemoryPoint> points, std::int64_t time) {
    const auto after = std::upper_bound(points.begin(), points.end(), time,
                                        [](std::int64_t t, const MemoryPoint& p) { return t < p.time; });
    return after == points.begin() ? nullptr : &*(after - 1);
}

CategoryCurve category_curve(std::vector<MemoryPoint> points) {
    CategoryCurve curve;
    curve.index = CurveIndex<std::int64_t>(
        points.size(), [&](std::size_t i) { return points[i].time; },
        [&](std::size_t i) { return points[i].total; });
    for (const MemoryPoint& point : points) {
        curve.most_total = std::max(curve.most_total, point.total);
        for (std::size_t c = 0; c < curve.most.size(); ++c)
            curve.most[c] = std::max(curve.most[c], point.bytes[c]);
    }
    curve.points = std::move(points);
    return curve;
}

std::vector<FoldedColumn> fold_curve(const CategoryCurve& curve, std::int64_t from, std::int64_t to,
                                     int columns) {
    if (columns <= 0 || to <= from) return {};
    std::vector<FoldedColumn> folded(static_cast<std::size_t>(columns));
    const std::vector<MemoryPoint>& points = curve.points;
    const auto take = [&](int i, std::size_t first, std::size_t last, bool carried) {
        static const MemoryPoint kNothing{};
        const MemoryPoint& before = first > 0 ? points[first - 1] : kNothing;
        const MemoryPoint *low = &before, *high = &before;
        if (first < last) {
            const auto found = curve.index.of(first, last, [&](std::size_t p) { return points[p].total; });
            if (!carried || found.lowest < low->total) low = &points[found.at_lowest];
            if (!carried || found.highest > high->total) high = &points[found.at_highest];
        }
        folded[static_cast<std::size_t>(i)] = {low->total, high->total, low->bytes, high->bytes};
    };
    walk_columns(
        curve.index, from, to, columns, [&](std::size_t p) { return points[p].time; }, take);
    return folded;
}

std::vector<FoldedColumn> fold_curve(std::span<const MemoryPoint> points, std::int64_t from, std::int64_t to,
                                     int columns) {
    if (columns <= 0 || to <= from) return {};
    std::vector<FoldedColumn> folded(static_cast<std::size_t>(columns));
    const double span = static_cast<double>(to - from);
    const auto edge = [&](int i) { return from + static_cast<std::int64_t>(span * i / columns); };

    auto next = std::lower_bound(points.begin(), points.end(), from,
                                 [](const MemoryPoint& p, std::int64_t t) { return p.time < t; });
    MemoryPoint held = next == points.begin() ? MemoryPoint{} : *(next - 1);
    for (int i = 0; i < columns; ++i) {
        const std::int64_t begin = edge(i);
        const std::int64_t end = i + 1 == columns ? to : edge(i + 1);
        FoldedColumn& column = folded[static_cast<std::size_t>(i)];
        if (end <=
            begin) {  // narrower than a nanosecond: the value carried in; its points count in the next column
            const MemoryPoint* here =
                next != points.end() && next->time == begin ? point_at(points, begin) : &held;
            column = {here->total, here->total, here->bytes, here->bytes};
            continue;
        }
        // The value carried in from the left counts unless a point replaces it at the very first instant.
        bool filled = false;
        if (next == points.end() || next->time > begin) {
            column = {held.total, held.total, held.bytes, held.bytes};
            filled = true;
        }
        for (; next != points.end() && next->time < end; ++next) {
            if (!filled || next->total < column.lowest) {
                column.lowest = next->total;
                column.at_lowest = next->bytes;
            }
            if (!filled || next->total > column.highest) {
                column.highest = next->total;
                column.at_highest = next->bytes;
            }
            filled = true;
            held = *next;
        }
    }
    return folded;
}

std::vector<FoldedColumn> fold_by_order(const CategoryCurve& curve, std::size_t first, std::size_t count,
                                        int columns) {
    if (columns <= 0 || count == 0) return {};
    const auto width = static_cast<std::size_t>(columns);
    std::vector<FoldedColumn> folded;
    folded.reserve(width);
    for (std::size_t i = 0; i < width; ++i) {
        const std::size_t from = i * count / width;
        const std::size_t to = std::max(from + 1, (i + 1) * count / width);
        const auto found =
            curve.index.of(first + from, first + to, [&](std::size_t p) { return curve.points[p].total; });
        const MemoryPoint &low = curve.points[found.at_lowest], &high = curve.points[found.at_highest];
        folded.push_back({low.total, high.total, low.bytes, high.bytes});
    }
    return folded;
}

std::vector<FoldedColumn> fold_by_order(std::span<const MemoryPoint> points, int columns) {
    if (columns <= 0 || points.empty()) return {};
    std::vector<FoldedColumn> folded;
    folded.reserve(static_cast<std::size_t>(columns));
    const auto count = static_cast<std::size_t>(columns);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t first = i * points.size() / count;
        const std::size_t last = std::max(first + 1, (i + 1) * points.size() / count);
        const auto [lowest, highest] =
            std::minmax_element(points.begin() + static_cast<std::ptrdiff_t>(first),
                                points.begin() + static_cast<std::ptrdiff_t>(last),
                                [](const MemoryPoint& a, const MemoryPoint& b) { return a.total < b.total; });
        folded.push_back({lowest->total, highest->total, lowest->bytes, highest->bytes});
    }
    return folded;
}

std::vector<ColumnRun> equal_runs(std::span<const FoldedColumn> columns) {
    std::vector<ColumnRun> runs;
    for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (i > 0 && columns[at] == columns[at - 1]) {
            ++runs.back().count;
        } else {
            runs.push_back({i, 1});
        }
    }
    return runs;
}

LineCurve line_curve(traces::analysis::ByteCurve curve) {
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

}  // namespace shardscope::viewer::draw
