// The offset of a host's clock from rank 0's, from the round trips that its processes measured
// (SHARD_CLOCKS): pure arithmetic.
//
// A measurement is a bound: an answer that arrived after 2u was given somewhere in between, so that the
// offset is known to within u, whatever the network did. Two of them, at the start and at the end of a run,
// give a line that is nowhere between them off by more than the larger u. Outside, the clock may drift by
// kUnseenDrift.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/merge/row_ids.h"

namespace shardscope::traces {

struct ClockMeasure {
    std::int64_t at = 0;           // ns on the clock that was measured
    std::int64_t offset = 0;       // rank 0's CLOCK_MONOTONIC - its own
    std::int64_t uncertainty = 0;  // of the offset, ns; 0 for rank 0's own clock
};

// How much a clock may gain or lose unmeasured, in seconds per second. Crystals are specified for less; the
// kernel corrects them by at most 500 ppm, and by a few ppm once it has settled.
inline constexpr double kUnseenDrift = 100e-6;

struct MeasuredClock {
    std::int64_t base = 0;         // CLOCK_MONOTONIC at time 0 of the clock, from which the times below count
    std::int64_t at = 0;           // ns
    std::int64_t offset = 0;       // rank 0's CLOCK_MONOTONIC - its own, at `at`
    double drift = 0;              // of the offset, in seconds per second
    bool knows_drift = false;      // otherwise `drift` is 0
    std::int64_t until = 0;        // the measurements span from `at` to here, ns
    std::int64_t uncertainty = 0;  // of the offset between `at` and `until`, ns

    std::int64_t uncertainty_at(std::int64_t time) const;
};

// Empty where there are no measurements. `length`: of the part whose times are to be mapped, from time 0. A
// drift is fitted where the measurements span half of that, or differ by more than their uncertainties.
std::optional<MeasuredClock> fit_measures(std::vector<ClockMeasure> measures, std::int64_t base,
                                          std::int64_t length);

// Maps time on `own` to time on `other`.
ClockMap map_between(const MeasuredClock& own, const MeasuredClock& other);

}  // namespace shardscope::traces
