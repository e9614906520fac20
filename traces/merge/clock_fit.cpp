#include "traces/merge/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "traces/analysis/base/percentile.h"
#include "traces/schema/sort_rows.h"

namespace shardscope::traces::merge {

namespace {

constexpr int kPolishings = 10;

struct Point {
    double time = 0, difference = 0;
};

// The median point of the residuals about a line through `from` with that slope.
Point middle(std::span<const ClockPair> pairs, std::int64_t from, double slope) {
    std::vector<double> times, differences;
    times.reserve(pairs.size());
    differences.reserve(pairs.size());
    for (const ClockPair& pair : pairs) {
        times.push_back(static_cast<double>(pair.own - from));
        differences.push_back(static_cast<double>(pair.other - pair.own) - slope * times.back());
    }
    return {analysis::lower_median(times), analysis::lower_median(differences)};
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
    return analysis::lower_median(off);
}

}  // namespace

ClockFit fit_clock(std::span<const ClockPair> pairs, bool may_drift) {
    std::vector<ClockPair> sorted(pairs.begin(), pairs.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.own < b.own; });
    std::vector<std::int64_t> differences;
    differences.reserve(sorted.size());
    for (const ClockPair& pair : sorted) differences.push_back(pair.other - pair.own);
    ClockFit flat{
        .offset = analysis::lower_median(differences), .drift = 0, .from = sorted.front().own, .spread = 0};
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
    line.offset = analysis::lower_median(at_from);
    line.spread = spread_of(sorted, line);
    const bool clear = std::abs(line.drift) * static_cast<double>(span) > static_cast<double>(line.spread);
    return clear && line.spread < flat.spread ? line : flat;
}

namespace {

// 31 years, in ns. Damaged files may hold larger numbers; up to this one no sum below overflows.
constexpr std::int64_t kLatest = 1'000'000'000'000'000'000;

std::int64_t scaled(double factor, std::int64_t ns) {
    return std::llround(factor * static_cast<double>(ns));
}

}  // namespace

std::int64_t MeasuredClock::uncertainty_at(std::int64_t time) const {
    if (uncertainty == 0) return 0;  // rank 0's own clock
    const std::int64_t outside = std::max({at - time, time - until, std::int64_t{0}});
    return uncertainty + scaled(kUnseenDrift, outside);
}

std::optional<MeasuredClock> fit_measures(std::vector<ClockMeasure> measures, std::int64_t base,
                                          std::int64_t length) {
    std::erase_if(measures, [](const ClockMeasure& m) {
        return std::abs(m.at) > kLatest || std::abs(m.offset) > kLatest || m.uncertainty < 0 ||
               m.uncertainty > kLatest;
    });
    if (measures.empty() || base <= 0 || base > kLatest) return {};
    const auto surer = [](const ClockMeasure& a, const ClockMeasure& b) {
        return a.uncertainty < b.uncertainty;
    };
    schema::sort_rows(measures, [](const auto& a, const auto& b) { return a.at < b.at; });
    const std::int64_t third = (measures.back().at - measures.front().at) / 3;
    const std::int64_t early = measures.front().at + third, late = measures.back().at - third;
    const auto best = *std::min_element(measures.begin(), measures.end(), surer);
    MeasuredClock clock{.base = base,
                        .at = best.at,
                        .offset = best.offset,
                        .until = best.at,
                        .uncertainty = best.uncertainty};
    if (best.uncertainty == 0 || third == 0) return clock;

    // The measurements with the least uncertainty at the start and at the end: several processes of one host
    // measured the same clock.
    const auto first_late =
        std::find_if(measures.begin(), measures.end(), [&](const auto& m) { return m.at >= late; });
    const auto first_after =
        std::find_if(measures.begin(), measures.end(), [&](const auto& m) { return m.at > early; });
    const ClockMeasure start = *std::min_element(measures.begin(), first_after, surer);
    const ClockMeasure end = *std::min_element(first_late, measures.end(), surer);
    const std::int64_t change = end.offset - start.offset, span = end.at - start.at;
    if (span < length / 2 && std::abs(change) <= start.uncertainty + end.uncertainty) return clock;
    clock.at = start.at;
    clock.offset = start.offset;
    clock.drift = static_cast<double>(change) / static_cast<double>(span);
    clock.knows_drift = true;
    clock.until = end.at;
    clock.uncertainty = std::max(start.uncertainty, end.uncertainty);
    return clock;
}

// Rank 0's clock at time t of a clock is t + base + offset + drift · (t - at). Mapping t from `own` to rank
// 0's clock and from there to `other` is linear, too; the line is anchored at own.at, where the numbers are
// small.
ClockMap map_between(const MeasuredClock& own, const MeasuredClock& other) {
    const std::int64_t moved_by = own.base + own.offset - other.base - other.offset;  // without drifts
    const std::int64_t since = own.at + moved_by - other.at;
    const double back = other.drift / (1 + other.drift);
    return {.shift = moved_by - scaled(back, since),
            .drift = (1 + own.drift) / (1 + other.drift) - 1,
            .from = own.at};
}

}  // namespace shardscope::traces::merge
