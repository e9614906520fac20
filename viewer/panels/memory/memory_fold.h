// Curves of one number (another rank's memory, what a pool reserved) folded into pixel columns as fold.h does
// it for curves by category. Pure arithmetic, no drawing; any thread. Times in nanoseconds, values in bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/memory/memory_curves.h"
#include "viewer/draw/fold.h"

namespace shardscope::viewer {

// A curve of one number.
struct LineCurve {
    traces::ByteCurve curve;
    CurveIndex<std::int64_t> index;
};
LineCurve line_curve(traces::ByteCurve curve);

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
// The largest value in force at any instant of [from, to).
std::int64_t line_most(const LineCurve& line, std::int64_t from, std::int64_t to);

}  // namespace shardscope::viewer
