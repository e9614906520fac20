// Reads anchors, and interpolates linearly between them.
#include "profiler/recorder/calibration.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace shardscope::profiler {
namespace {

// ns per tick between two anchors.
double slope(const ClockAnchor& a, const ClockAnchor& b) {
    return static_cast<double>(b.time - a.time) / static_cast<double>(b.ticks - a.ticks);
}

// The line through `from` with the given slope; exact at `from`. Ticks before it give earlier times.
MonotonicTime along(const ClockAnchor& from, double ns_per_tick, Ticks ticks) {
    const auto distance = static_cast<std::int64_t>(ticks - from.ticks);
    return MonotonicTime(from.time.ns +
                         static_cast<std::int64_t>(std::floor(static_cast<double>(distance) * ns_per_tick)));
}

}  // namespace

ClockAnchor read_anchor(ClockSource source) {
    if (source == ClockSource::monotonic) {
        const auto now = MonotonicTime::now();
        return {Ticks(static_cast<std::uint64_t>(now.ns)), now};
    }
    return read_tightest<MonotonicTime>(source, 12);
}

Calibration::Calibration(ClockSource source) : source_(source) {
    anchors_.push_back(read_anchor(source));
    // The first slope comes from anchors a millisecond apart: with an error of 20 ns in each, it is good to
    // 40 ppm. The next anchor, a few milliseconds later, improves it.
    while (MonotonicTime::now() - anchors_[0].time < 1'000'000) {
    }
    do update();
    while (anchors_.size() < 2);
}

void Calibration::add(ClockAnchor anchor) {
    if (!anchors_.empty() && (anchor.ticks <= anchors_.back().ticks || anchor.time <= anchors_.back().time))
        return;
    anchors_.push_back(anchor);
    if (anchors_.size() > kMaxAnchors) thin();
}

// Drops every second anchor of the older half; the oldest stays.
void Calibration::thin() {
    const std::size_t half = anchors_.size() / 2;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < half; i += 2) anchors_[kept++] = anchors_[i];
    anchors_.erase(anchors_.begin() + static_cast<std::ptrdiff_t>(kept),
                   anchors_.begin() + static_cast<std::ptrdiff_t>(half));
}

MonotonicTime Calibration::to_monotonic(Ticks ticks) const {
    if (source_ == ClockSource::monotonic) return MonotonicTime(static_cast<std::int64_t>(ticks.count));
    const ClockAnchor& first = anchors_.front();
    const ClockAnchor& last = anchors_.back();
    if (ticks < first.ticks) return along(first, slope(first, anchors_[1]), ticks);
    if (ticks >= last.ticks) return along(last, slope(first, last), ticks);
    std::size_t segment =
        anchors_.size() - 2;  // nearly always: a drain converts what came since the last one
    if (ticks < anchors_[segment].ticks) {
        const auto after = std::upper_bound(anchors_.begin(), anchors_.end(), ticks,
                                            [](Ticks t, const ClockAnchor& a) { return t < a.ticks; });
        segment = static_cast<std::size_t>(std::distance(anchors_.begin(), after)) - 1;
    }
    const ClockAnchor& a = anchors_[segment];
    const ClockAnchor& b = anchors_[segment + 1];
    // Rounding of the division must not carry a time past the next anchor.
    return std::min(along(a, slope(a, b), ticks), b.time);
}

}  // namespace shardscope::profiler
