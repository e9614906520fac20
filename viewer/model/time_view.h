// Time to pixels and back, and how the visible range moves: zooming about a point, panning, limits.
// Pure arithmetic, any thread. Times in nanoseconds, positions in pixels from the left edge of the view.
#pragma once

#include <cstdint>

namespace shardscope::viewer::model {

// Within 73 years of the start of the capture. A view of such times with margins, and every difference in it,
// fits in 64 bits; times further out, from files beside the trace, are refused.
constexpr bool is_viewable(std::int64_t time) {
    constexpr std::int64_t kFarthest = std::int64_t{1} << 61;
    return time >= -kFarthest && time <= kFarthest;
}

struct TimeView {
    std::int64_t from = 0, to = 1;  // visible time, half-open, never empty
    double width = 1;               // pixels

    double ns_per_pixel() const { return static_cast<double>(to - from) / width; }
    double pixel(std::int64_t time) const { return static_cast<double>(time - from) / ns_per_pixel(); }
    std::int64_t time(double pixel) const;

    // The first instant of pixel column i, for i in 0..columns; column i is [column_start(i),
    // column_start(i+1)). Whole nanoseconds, so that sums over columns are exact.
    std::int64_t column_start(int i, int columns) const;
    // The column that holds `time`; negative, or `columns` and above, outside the view.
    std::int64_t column_of(std::int64_t time, int columns) const;
};

struct TimeSpan {
    std::int64_t from = 0, to = 0;
    bool operator==(const TimeSpan&) const = default;
};

inline constexpr std::int64_t kShortestView = 100;  // ns: nothing in a trace is finer

inline constexpr double kWheelStep = 0.8;  // factor of the visible range's length for each notch of the wheel

// The range after zooming by `factor` (below 1: closer) with the instant at `anchor` fixed. Never shorter
// than kShortestView, never more than four times the whole; part of `whole` stays in sight.
TimeSpan zoomed(TimeSpan visible, TimeSpan whole, std::int64_t anchor, double factor);

// Moved by `by` nanoseconds; part of `whole` stays in sight.
TimeSpan panned(TimeSpan visible, TimeSpan whole, std::int64_t by);

// `target` with margins, wide enough to be seen well.
TimeSpan framed(TimeSpan target, TimeSpan whole);

}  // namespace shardscope::viewer::model
