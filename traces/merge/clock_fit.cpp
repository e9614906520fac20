#include "traces/merge/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shardscope::traces {

namespace {

constexpr int kPolishings = 10;

struct Point {
    double time = 0, difference = 0;
};

double middle(std::vector<double> values) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

// The median point of the residuals about a line through `from` with that slope.
Point middle(std::span<const ClockPair> pairs, std::int64_t from, double slope) {
    std::vector<double> times, differences;
    times.reserve(pairs.size());
    differences.reserve(pairs.size());
    for (const ClockPair& pair : pairs) {
        times.push_back(static_cast<double>(pair.own - from));
        differences.push_back(static_cast<double>(pair.other - pair.own) - slope * times.back());
    }
    return {middle(std::move(times)), middle(std::move(differences))};
}

// Repeated until the residuals have no slope: after the first slope alone, outliers still shift the medians
// of the thirds.
double resistant_slope(std::span<const ClockPair> pairs, std::int64_t from) {
    const std::size_t third = pairs.size() / 3;
    double slope = 0;
    for (int round = 0; round < kPolishings; ++round) {
        const Point left = middle(pairs.first(third), from, slope);
        const Point right = middle(pairs.last(third), from, slope);
        if (right.time <= left.time) return 0;
        slope += (right.difference - left.difference) / (right.time - left.time);
    }
    return slope;
}

std::int64_t spread_of(std::span<const ClockPair> pairs, const ClockFit& fit) {
    std::vector<std::int64_t> off;
    off.reserve(pairs.size());
    for (const ClockPair& pair : pairs) {
        const auto drifted = std::llround(fit.drift * static_cast<double>(pair.own - fit.from));
        off.push_back(std::abs(pair.other - pair.own - fit.offset - drifted));
    }
    return median(off);
}

}  // namespace

std::int64_t median(std::vector<std::int64_t>& values) {
    if (values.empty()) return 0;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

ClockFit fit_clock(std::span<const ClockPair> pairs, bool may_drift) {
    std::vector<ClockPair> sorted(pairs.begin(), pairs.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.own < b.own; });
    std::vector<std::int64_t> differences;
    differences.reserve(sorted.size());
    for (const ClockPair& pair : sorted) differences.push_back(pair.other - pair.own);
    ClockFit flat{.offset = median(differences), .drift = 0, .from = sorted.front().own, .spread = 0};
    flat.spread = spread_of(sorted, flat);

    const std::int64_t span = sorted.back().own - sorted.front().own;
    if (!may_drift || sorted.size() < kPairsForDrift || span < kSpanForDrift) return flat;
    ClockFit line = flat;
    line.drift = resistant_slope(sorted, line.from);
    std::vector<std::int64_t> at_from;
    at_from.reserve(sorted.size());
    for (const ClockPair& pair : sorted) {
        const auto drifted = std::llround(line.drift * static_cast<double>(pair.own - line.from));
        at_from.push_back(pair.other - pair.own - drifted);
    }
    line.offset = median(at_from);
    line.spread = spread_of(sorted, line);
    const bool clear = std::abs(line.drift) * static_cast<double>(span) > static_cast<double>(line.spread);
    return clear && line.spread < flat.spread ? line : flat;
}

}  // namespace shardscope::traces
