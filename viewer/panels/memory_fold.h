// Curves of millions of points folded into pixel columns in little time: an index of the lowest and the
// highest of every block of points, made once, so that a column looks at its two ends and at blocks between.
// Pure arithmetic, no drawing; any thread. Times in nanoseconds, values in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "traces/analysis/memory.h"
#include "traces/analysis/memory_curves.h"
#include "viewer/draw/fold.h"

namespace shardscope::viewer {

// Where the lowest and the highest value of any stretch of a sequence stand.
class Extremes {
  public:
    Extremes() = default;
    Extremes(std::size_t count, const std::function<std::int64_t(std::size_t)>& value);

    // Of [first, last), which holds one value at least: the first lowest and the first highest one. `value`
    // as given when this was made.
    template <class Value>
    std::pair<std::size_t, std::size_t> of(std::size_t first, std::size_t last, const Value& value) const {
        std::pair<std::size_t, std::size_t> best{first, first};
        const auto look = [&](std::size_t low, std::size_t high) {
            if (value(low) < value(best.first)) best.first = low;
            if (value(high) > value(best.second)) best.second = high;
        };
        for (std::size_t i = first; i < last;) {
            if (i % kBlock == 0 && i + kBlock <= last) {
                look(lowest_[i / kBlock], highest_[i / kBlock]);
                i += kBlock;
            } else {
                look(i, i);
                ++i;
            }
        }
        return best;
    }

  private:
    static constexpr std::size_t kBlock = 64;
    std::vector<std::uint32_t> lowest_, highest_;  // of each whole block
};

// The curve of one rank by category.
struct CategoryCurve {
    std::vector<traces::MemoryPoint> points;  // sorted by time
    Extremes extremes;
    traces::CategoryBytes most{};  // of each category, ever
};
CategoryCurve category_curve(std::vector<traces::MemoryPoint> points);

// The same columns as fold_curve() and fold_by_order() of the points make.
std::vector<FoldedColumn> fold_curve(const CategoryCurve& curve, std::int64_t from, std::int64_t to,
                                     int columns);
// Of the points [first, first + count).
std::vector<FoldedColumn> fold_by_order(const CategoryCurve& curve, std::size_t first, std::size_t count,
                                        int columns);

// A curve of one number.
struct LineCurve {
    traces::ByteCurve curve;
    Extremes extremes;
};
LineCurve line_curve(traces::ByteCurve curve);

struct LineColumn {
    std::int64_t lowest = 0, highest = 0;
    std::int64_t first = 0;  // what held when the column began
    bool operator==(const LineColumn&) const = default;
};
// Columns as fold_curve()'s; `shift` is added to the curve's times.
std::vector<LineColumn> fold_line(const LineCurve& line, std::int64_t from, std::int64_t to, int columns,
                                  std::int64_t shift = 0);
// What held at `time`, 0 before the first point.
std::int64_t line_at(const LineCurve& line, std::int64_t time);
// The largest value in force at any instant of [from, to).
std::int64_t line_most(const LineCurve& line, std::int64_t from, std::int64_t to);

}  // namespace shardscope::viewer
