// Time to pixels and back, and how the visible range moves: zooming about a point, panning, limits.
// Pure arithmetic, any thread. Times in nanoseconds, positions in pixels from the left edge of the view.
#pragma once

#include <cstdint>

namespace shardscope::viewer {

// Within 73 years of the start of the capture. Of such times a view with air around them, and every
// difference in it, fits 64 bits; times from files beside the trace that lie farther out are refused.
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
    // The column that holds `time`; below 0 or from `columns` on outside the view.
    std::int64_t column_of(std::int64_t time, int columns) const;
};

struct TimeSpan {
    std::int64_t from = 0, to = 0;
    bool operator==(const TimeSpan&) const = default;
};

inline constexpr std::int64_t kShortestView = 100;  // ns: nothing in a trace is finer

// The range after zooming by `factor` (below 1: closer) with the instant at `anchor` staying where it is.
// Never shorter than kShortestView, never more than four times the whole, and never out of sight of `whole`.
TimeSpan zoomed(TimeSpan visible, TimeSpan whole, std::int64_t anchor, double factor);

// Moved by `by` nanoseconds, some of `whole` staying in sight.
TimeSpan panned(TimeSpan visible, TimeSpan whole, std::int64_t by);

// `target` with air around it, as wide as it needs to be seen well.
TimeSpan framed(TimeSpan target, TimeSpan whole);

}  // namespace shardscope::viewer
