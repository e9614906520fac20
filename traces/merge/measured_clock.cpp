#include "traces/merge/measured_clock.h"

#include <algorithm>
#include <cmath>

#include "traces/schema/sort_rows.h"

namespace shardscope::traces {

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
    sort_rows(measures, [](const auto& a, const auto& b) { return a.at < b.at; });
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

}  // namespace shardscope::traces
