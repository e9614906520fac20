// See time_view.h.
#include "viewer/model/time_view.h"

#include <algorithm>
#include <cmath>

namespace shardscope::viewer::model {
namespace {

__extension__ using Wide = __int128;  // a time multiplied by a column overflows 64 bits after hours

// Keeps at least a twentieth of the view on `whole`.
TimeSpan in_sight(TimeSpan view, TimeSpan whole) {
    const std::int64_t length = view.to - view.from;
    const std::int64_t part = std::max<std::int64_t>(1, length / 20);
    const std::int64_t from = std::clamp(view.from, whole.from - (length - part),
                                         std::max(whole.to - part, whole.from - (length - part)));
    return {from, from + length};
}

}  // namespace

std::int64_t TimeView::time(double at) const {
    return from + static_cast<std::int64_t>(std::floor(at * ns_per_pixel()));
}

namespace {

// Whether so many nanoseconds multiplied by a number of columns fit in 64 bits, whose division takes a
// quarter of the time of one in 128.
bool is_narrow(std::int64_t time, int columns) {
    constexpr std::int64_t kNarrow = std::int64_t{1} << 46;  // 19 hours
    return time > -kNarrow && time < kNarrow && columns < 1 << 16;
}

}  // namespace

std::int64_t TimeView::column_start(int i, int columns) const {
    if (is_narrow(to - from, columns) && i <= columns) return from + (to - from) * i / columns;
    return from + static_cast<std::int64_t>(static_cast<Wide>(to - from) * i / columns);
}

std::int64_t TimeView::column_of(std::int64_t time, int columns) const {
    // The largest i with from + floor(span * i / columns) <= time, which means span * i < (time - from + 1) *
    // columns.
    if (is_narrow(to - from, columns) && is_narrow(time - from, columns)) {
        const std::int64_t near = (time - from + 1) * columns;
        return near <= 0 ? -1 : (near + (to - from) - 1) / (to - from) - 1;
    }
    const Wide span = to - from;
    const Wide reach = static_cast<Wide>(time - from + 1) * columns;
    if (reach <= 0) return -1;
    return static_cast<std::int64_t>((reach + span - 1) / span - 1);
}

TimeSpan zoomed(TimeSpan visible, TimeSpan whole, std::int64_t anchor, double factor) {
    const double length = static_cast<double>(visible.to - visible.from);
    const double longest =
        4.0 * static_cast<double>(std::max<std::int64_t>(whole.to - whole.from, kShortestView));
    const double next = std::clamp(std::round(length * factor), static_cast<double>(kShortestView), longest);
    const double share = std::clamp(static_cast<double>(anchor - visible.from) / length, 0.0, 1.0);
    const std::int64_t from = anchor - static_cast<std::int64_t>(std::llround(next * share));
    return in_sight({from, from + static_cast<std::int64_t>(next)}, whole);
}

TimeSpan panned(TimeSpan visible, TimeSpan whole, std::int64_t by) {
    return in_sight({visible.from + by, visible.to + by}, whole);
}

TimeSpan framed(TimeSpan target, TimeSpan whole) {
    const std::int64_t length = std::max(target.to - target.from, kShortestView);
    const std::int64_t air = length / 4;
    return in_sight({target.from - air, target.from + length + air}, whole);
}

}  // namespace shardscope::viewer::model
