// How the clock of a host stood to rank 0's, from what its processes measured by round trips (SHARD_CLOCKS):
// pure arithmetic.
//
// A measurement is a bound: an answer that came back after 2u was given somewhere in between, so that the
// offset is known to within u, whatever the wires did. Two of them, at the start and at the end of a run,
// give a line that is nowhere between them off by more than the larger of the two u. Outside, a clock may go
// its own way by as much as clocks do.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/merge/row_ids.h"

namespace shardscope::traces {

struct ClockMeasure {
    std::int64_t at = 0;           // ns on the clock that was measured
    std::int64_t offset = 0;       // rank 0's CLOCK_MONOTONIC - its own
    std::int64_t uncertainty = 0;  // of the offset, ns; 0: it is rank 0's own clock
};

// What a clock may gain or lose unseen, in seconds each second. Crystals are specified for less; the kernel
// corrects them by at most 500 ppm, and by a few ppm once it has settled.
inline constexpr double kUnseenDrift = 100e-6;

struct MeasuredClock {
    std::int64_t base = 0;         // CLOCK_MONOTONIC at time 0 of the clock; all below counts from there
    std::int64_t at = 0;           // ns
    std::int64_t offset = 0;       // of rank 0's CLOCK_MONOTONIC to its own, at `at`
    double drift = 0;              // of the offset, in seconds each second
    bool knows_drift = false;      // else `drift` is 0
    std::int64_t until = 0;        // the measurements reach from `at` to here
    std::int64_t uncertainty = 0;  // of the offset in between, ns

    std::int64_t uncertainty_at(std::int64_t time) const;
};

// None of no measurements. `length`: of what is to be brought onto the other clock, from time 0. A drift is
// taken from measurements that span half of that, or that differ by more than their uncertainties.
std::optional<MeasuredClock> fit_measures(std::vector<ClockMeasure> measures, std::int64_t base,
                                          std::int64_t length);

// From time on the one clock to time on the other.
ClockMap map_between(const MeasuredClock& own, const MeasuredClock& other);

}  // namespace shardscope::traces
