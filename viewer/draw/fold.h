// Folds a step curve (memory by category over time) into pixel columns without losing its extremes.
// Pure arithmetic, no drawing; any thread. Times in nanoseconds, values in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_curves.h"
#include "traces/lanes/curve_index.h"

namespace shardscope::viewer::draw {

using traces::lanes::CurveIndex;
using traces::lanes::Extremes;

// One pixel column: the curve's lowest and highest total within it, each with its split by category.
struct FoldedColumn {
    std::int64_t lowest = 0, highest = 0;
    traces::analysis::CategoryBytes at_lowest{}, at_highest{};
    bool operator==(const FoldedColumn&) const = default;
};

// A curve with an index, so that even millions of points are folded quickly.
struct CategoryCurve {
    std::vector<traces::analysis::MemoryPoint> points;  // sorted by time
    CurveIndex<std::int64_t> index;                     // index of their totals
    traces::analysis::CategoryBytes most{};             // largest bytes ever, by category
    std::int64_t most_total = 0;                        // at least 0
};
CategoryCurve category_curve(std::vector<traces::analysis::MemoryPoint> points);

// Column i covers [from + i*span/columns, from + (i+1)*span/columns). The curve holds its value until the
// next point and is zero before the first; every point of a column counts, even if another one follows at the
// same instant, so that the highest column shows the peak exactly.
std::vector<FoldedColumn> fold_curve(const CategoryCurve& curve, std::int64_t from, std::int64_t to,
                                     int columns);
// The plain version, a scan over all points (sorted by time): tests compare the version above with it.
std::vector<FoldedColumn> fold_curve(std::span<const traces::analysis::MemoryPoint> points, std::int64_t from,
                                     std::int64_t to, int columns);

// The same with all points equally wide: column i covers the points [i*n/columns, (i+1)*n/columns) of [first,
// first + count), at least one.
std::vector<FoldedColumn> fold_by_order(const CategoryCurve& curve, std::size_t first, std::size_t count,
                                        int columns);
std::vector<FoldedColumn> fold_by_order(std::span<const traces::analysis::MemoryPoint> points, int columns);

// The last point at or before `time`, or nullptr.
const traces::analysis::MemoryPoint* point_at(std::span<const traces::analysis::MemoryPoint> points,
                                              std::int64_t time);

// A run of equal neighbouring columns: first column and count. Each run is drawn as one rectangle.
struct ColumnRun {
    int first = 0, count = 0;
};
std::vector<ColumnRun> equal_runs(std::span<const FoldedColumn> columns);

// --- Curves of one number (another rank's memory, a pool's reserved bytes), folded into pixel columns like
// the curves by category above. Pure arithmetic, no drawing; any thread. Times in nanoseconds, values in
// bytes.

// A curve of one number.
struct LineCurve {
    traces::analysis::ByteCurve curve;
    CurveIndex<std::int64_t> index;
};
LineCurve line_curve(traces::analysis::ByteCurve curve);

struct LineColumn {
    std::int64_t lowest = 0, highest = 0;
    std::int64_t first = 0;  // the value when the column began
    bool operator==(const LineColumn&) const = default;
};
// Columns like those of fold_curve(); `shift` is added to the curve's times.
std::vector<LineColumn> fold_line(const LineCurve& line, std::int64_t from, std::int64_t to, int columns,
                                  std::int64_t shift = 0);
// The value at `time`, 0 before the first point.
std::int64_t line_at(const LineCurve& line, std::int64_t time);

}  // namespace shardscope::viewer::draw
