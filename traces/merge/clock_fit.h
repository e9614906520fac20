// How clocks run against each other: pure arithmetic on pairs of times and on measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traces/merge/row_ids.h"

namespace shardscope::traces::merge {

// How the clock of one part runs against another's, from events that end at the same moment in both.
//
// All ranks of a collective end together: none can finish before the last has given its data. So the
// difference between the ends that two parts recorded is the offset of their clocks, apart from jitter. The
// offset is the median of the differences; up to half of the pairs may be wrong without harm. With enough
// pairs over enough time, the difference in clock speed is fitted, too, with Tukey's resistant line: the
// pairs in three thirds by time, the slope between the medians of the outer two, repeated on the residuals.
// Source: J. W. Tukey, Exploratory Data Analysis (1977), chapter 5; D. C. Hoaglin, F. Mosteller, J. W. Tukey,
// Understanding Robust and Exploratory Data Analysis (1983), chapter 5.
struct ClockPair {
    std::int64_t own = 0;    // ns on the clock that is fitted
    std::int64_t other = 0;  // ns on the reference clock
};

struct ClockFit {
    std::int64_t offset = 0;  // other - own, ns, at `from`
    double drift = 0;         // of the offset, in seconds per second; 0 if it is not significant
    std::int64_t from = 0;    // ns on the own clock
    std::int64_t spread = 0;  // median of |difference - fit|, ns
};

inline constexpr std::size_t kPairsForDrift = 20;
inline constexpr std::int64_t kSpanForDrift = 10'000'000'000;  // ns

// With `may_drift`, a drift is fitted if at least kPairsForDrift pairs span at least kSpanForDrift and it
// moves the clock over that span by more than the spread. `pairs` must not be empty.
ClockFit fit_clock(std::span<const ClockPair> pairs, bool may_drift);

// The offset of a host's clock from rank 0's, from the round trips that its processes measured
// (SHARD_CLOCKS). Each measurement is a bound: if the answer arrives 2u after the request was sent, the other
// clock was read in between, so that the offset is known to within u, whatever the network did. Two
// measurements, at the start and at the end of a run, define a line whose error between them never exceeds
// the larger u. Outside, the clock may drift by kUnseenDrift.
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

// Empty if there are no measurements. `length`: of the part whose times are to be mapped, from time 0. A
// drift is fitted if the measurements span half of that, or differ by more than their uncertainties.
std::optional<MeasuredClock> fit_measures(std::vector<ClockMeasure> measures, std::int64_t base,
                                          std::int64_t length);

// Maps time on `own` to time on `other`.
ClockMap map_between(const MeasuredClock& own, const MeasuredClock& other);

// How a part's clock was aligned to the first part's.
struct ClockShift {
    std::int64_t by_wall_ns = 0;     // the shift by the wall clock alone
    std::int64_t collectives = 0;    // those shared with other parts
    bool by_collectives = false;     // whether collectives determined the shift
    std::int64_t correction_ns = 0;  // how far collectives moved it
    // The largest uncertainty of its clock as measured against the first part's (SHARD_CLOCKS); -1: not
    // measured.
    std::int64_t uncertainty_ns = -1;
};

// How well the clocks of all parts agree.
struct ClockResiduals {
    std::int64_t collectives = 0;  // those that several parts recorded
    // Time between the first and the last end of such a collective among the parts, ns: median and worst.
    std::int64_t residual_ns = 0, worst_ns = 0;
    std::int64_t residual_by_wall_ns = 0;   // the median with the wall clock alone
    std::int64_t residual_measured_ns = 0;  // the median before collectives moved a clock
};

}  // namespace shardscope::traces::merge
