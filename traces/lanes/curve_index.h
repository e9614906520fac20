// An index over a step curve of millions of points: the lowest and the highest value of every block of
// points, of every block of blocks and so on, and the time of every kStride-th point. Made once, off the
// frame thread; afterwards a pixel column costs about the same for ten points as for ten million. 1.75 bytes
// for each point. Pure arithmetic, no drawing; any thread. Times in nanoseconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscope::traces::lanes {

// The positions of the first lowest and the first highest of some points.
template <class Number>
struct Extremes {
    Number lowest = 0, highest = 0;
    std::uint32_t at_lowest = 0, at_highest = 0;
    void take(const Extremes& later) {
        if (later.lowest < lowest) {
            lowest = later.lowest;
            at_lowest = later.at_lowest;
        }
        if (later.highest > highest) {
            highest = later.highest;
            at_highest = later.at_highest;
        }
    }
};

// `time(i)` and `value(i)` return point i from wherever the curve is stored: they are passed to every call
// and must always return the same values. Points are sorted by time; there are fewer than 2^32.
template <class Number>
class CurveIndex {
  public:
    CurveIndex() = default;
    template <class Time, class Value>
    CurveIndex(std::size_t count, const Time& time, const Value& value) : count_(count) {
        times_.reserve(count / kStride + 1);
        for (std::size_t i = 0; i < count; i += kStride) times_.push_back(time(i));
        std::vector<Extremes<Number>> blocks;
        blocks.reserve(count / kFan);
        for (std::size_t first = 0; first + kFan <= count; first += kFan)
            blocks.push_back(scan(first, first + kFan, value));
        while (!blocks.empty()) {
            std::vector<Extremes<Number>> above;
            for (std::size_t first = 0; first + kFan <= blocks.size(); first += kFan) {
                above.push_back(blocks[first]);
                for (std::size_t b = first + 1; b < first + kFan; ++b) above.back().take(blocks[b]);
            }
            levels_.push_back(std::move(blocks));
            blocks = std::move(above);
        }
    }

    std::size_t size() const { return count_; }

    // The first point at or after index `after` whose time is `t` or later; size() if there is none.
    template <class Time>
    std::size_t first_from(std::size_t after, std::int64_t t, const Time& time) const {
        // The stride that contains it: the one before the first that begins at `t` or later.
        const auto stride = static_cast<std::ptrdiff_t>(std::min(after / kStride, times_.size()));
        const auto found = std::lower_bound(times_.begin() + stride, times_.end(), t);
        const auto above = static_cast<std::size_t>(found - times_.begin()) * kStride;
        std::size_t low = std::max(after, above >= kStride ? above - kStride : 0);
        std::size_t high = std::max(low, std::min(above, count_));
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (time(middle) < t) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    // The extremes of the points [first, last), at least one point.
    template <class Value>
    Extremes<Number> of(std::size_t first, std::size_t last, const Value& value) const {
        Extremes<Number> best = scan(first, first + 1, value);
        for (std::size_t i = first + 1; i < last;) {
            std::size_t points = 1, level = 0;  // the largest block that begins here and ends in time
            while (level < levels_.size() && i % (points * kFan) == 0 && i + points * kFan <= last) {
                points *= kFan;
                ++level;
            }
            best.take(level == 0 ? scan(i, i + 1, value) : levels_[level - 1][i / points]);
            i += points;
        }
        return best;
    }

    std::size_t memory() const {  // bytes used on the heap
        std::size_t bytes = times_.capacity() * sizeof(std::int64_t);
        for (const auto& level : levels_) bytes += level.capacity() * sizeof(Extremes<Number>);
        return bytes;
    }

  private:
    static constexpr std::size_t kFan = 16, kStride = 64;

    template <class Value>
    static Extremes<Number> scan(std::size_t first, std::size_t last, const Value& value) {
        const auto one = [&](std::size_t i) {
            const Number v = value(i);
            return Extremes<Number>{v, v, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i)};
        };
        Extremes<Number> best = one(first);
        for (std::size_t i = first + 1; i < last; ++i) best.take(one(i));
        return best;
    }

    std::size_t count_ = 0;
    std::vector<std::int64_t> times_;                    // times of every kStride-th point
    std::vector<std::vector<Extremes<Number>>> levels_;  // extremes of blocks of kFan, kFan^2, ... points
};

// Walks the columns of [from, to): `column(i, first, last, carried)` receives the points [first, last) inside
// column i, and whether the value carried in from the left (that of point first - 1) counts too. A column
// narrower than a nanosecond has no points: it has the value carried in, and its points count in the next
// column.
template <class Number, class Time, class Column>
void walk_columns(const CurveIndex<Number>& index, std::int64_t from, std::int64_t to, int columns,
                  const Time& time, const Column& column) {
    const double span = static_cast<double>(to - from);
    const auto edge = [&](int i) {
        return i == columns ? to : from + static_cast<std::int64_t>(span * i / columns);
    };
    const std::size_t count = index.size();
    std::size_t next = index.first_from(0, from, time);
    for (int i = 0; i < columns; ++i) {
        const std::int64_t begin = edge(i), end = edge(i + 1);
        if (end <= begin) {
            std::size_t here = next;
            while (here < count && time(here) == begin) ++here;
            column(i, here, here, true);
            continue;
        }
        const std::size_t last = index.first_from(next, end, time);
        column(i, next, last, next == count || time(next) > begin);
        next = last;
    }
}

}  // namespace shardscope::traces::lanes
