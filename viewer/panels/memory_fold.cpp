// See memory_fold.h.
#include "viewer/panels/memory_fold.h"

#include <algorithm>

namespace shardscope::viewer {
namespace {

using traces::MemoryPoint;

// The first instant of column i, as fold_curve() has it.
std::int64_t edge(std::int64_t from, std::int64_t to, int i, int columns) {
    if (i == columns) return to;
    return from + static_cast<std::int64_t>(static_cast<double>(to - from) * i / columns);
}

// Walks the columns: each is told the points [first, last) inside it and whether the value carried in from
// the left (of the point first - 1) counts too. `time(i)` is the time of point i of `count`.
template <class Time, class Column>
void walk_columns(std::size_t count, std::int64_t from, std::int64_t to, int columns, const Time& time,
                  const Column& column) {
    const auto first_at = [&](std::size_t after, std::int64_t t) {  // the first point from t on
        std::size_t low = after, high = count;
        // Columns hold few points of many: look near first.
        for (std::size_t step = 1; low + step < count && time(low + step) < t; step *= 2) low += step;
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (time(middle) < t) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    };
    std::size_t next = first_at(0, from);
    for (int i = 0; i < columns; ++i) {
        const std::int64_t begin = edge(from, to, i, columns), end = edge(from, to, i + 1, columns);
        if (end <= begin) {  // narrower than a nanosecond: what holds there; points count in the column after
            std::size_t here = next;
            while (here < count && time(here) == begin) ++here;
            column(i, here, here, true);
            continue;
        }
        const std::size_t last = first_at(next, end);
        column(i, next, last, next == count || time(next) > begin);
        next = last;
    }
}

}  // namespace

Extremes::Extremes(std::size_t count, const std::function<std::int64_t(std::size_t)>& value) {
    lowest_.reserve(count / kBlock);
    highest_.reserve(count / kBlock);
    for (std::size_t first = 0; first + kBlock <= count; first += kBlock) {
        std::size_t low = first, high = first;
        for (std::size_t i = first + 1; i < first + kBlock; ++i) {
            if (value(i) < value(low)) low = i;
            if (value(i) > value(high)) high = i;
        }
        lowest_.push_back(static_cast<std::uint32_t>(low));
        highest_.push_back(static_cast<std::uint32_t>(high));
    }
}

CategoryCurve category_curve(std::vector<MemoryPoint> points) {
    CategoryCurve curve;
    curve.extremes = Extremes(points.size(), [&](std::size_t i) { return points[i].total; });
    for (const MemoryPoint& point : points) {
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
    const auto total = [&](std::size_t i) { return points[i].total; };
    const auto take = [&](int i, std::size_t first, std::size_t last, bool carried) {
        static const MemoryPoint kNothing{};
        const MemoryPoint& before = first > 0 ? points[first - 1] : kNothing;
        const MemoryPoint *low = &before, *high = &before;
        if (first < last) {
            const auto [lowest, highest] = curve.extremes.of(first, last, total);
            if (!carried || points[lowest].total < low->total) low = &points[lowest];
            if (!carried || points[highest].total > high->total) high = &points[highest];
        }
        folded[static_cast<std::size_t>(i)] = {low->total, high->total, low->bytes, high->bytes};
    };
    walk_columns(
        points.size(), from, to, columns, [&](std::size_t i) { return points[i].time; }, take);
    return folded;
}

std::vector<FoldedColumn> fold_by_order(const CategoryCurve& curve, std::size_t first, std::size_t count,
                                        int columns) {
    if (columns <= 0 || count == 0) return {};
    const auto total = [&](std::size_t i) { return curve.points[i].total; };
    const auto width = static_cast<std::size_t>(columns);
    std::vector<FoldedColumn> folded;
    folded.reserve(width);
    for (std::size_t i = 0; i < width; ++i) {
        const std::size_t from = i * count / width;
        const std::size_t to = std::max(from + 1, (i + 1) * count / width);
        const auto [lowest, highest] = curve.extremes.of(first + from, first + to, total);
        const MemoryPoint &low = curve.points[lowest], &high = curve.points[highest];
        folded.push_back({low.total, high.total, low.bytes, high.bytes});
    }
    return folded;
}

LineCurve line_curve(traces::ByteCurve curve) {
    LineCurve line;
    line.extremes = Extremes(curve.size(), [&](std::size_t i) { return curve.bytes[i]; });
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
            const auto [lowest, highest] = line.extremes.of(first, last, value);
            column.lowest = carried ? std::min(before, bytes[lowest]) : bytes[lowest];
            column.highest = carried ? std::max(before, bytes[highest]) : bytes[highest];
            if (!carried) column.first = bytes[first];
        }
        folded[static_cast<std::size_t>(i)] = column;
    };
    walk_columns(
        bytes.size(), from - shift, to - shift, columns, [&](std::size_t i) { return line.curve.time[i]; },
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
