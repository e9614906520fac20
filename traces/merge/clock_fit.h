// How the clock of one part runs against another's, from events that end at the same moment in both: pure
// arithmetic on pairs of times.
//
// All ranks of a collective end together: none can finish before the last has given its data. So the
// difference between the ends that two parts recorded is the offset of their clocks, apart from jitter. The
// offset is the median of the differences; up to half of the pairs may be wrong without harm. With enough
// pairs over enough time, the difference in clock speed is fitted, too, with Tukey's resistant line: the
// pairs in three thirds by time, the slope between the medians of the outer two, repeated on the residuals.
// Source: J. W. Tukey, Exploratory Data Analysis (1977), chapter 5; D. C. Hoaglin, F. Mosteller, J. W. Tukey,
// Understanding Robust and Exploratory Data Analysis (1983), chapter 5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardscope::traces {

struct ClockPair {
    std::int64_t own = 0;    // ns on the clock that is fitted
    std::int64_t other = 0;  // ns on the reference clock
};

struct ClockFit {
    std::int64_t offset = 0;  // other - own, ns, at `from`
    double drift = 0;         // of the offset, in seconds per second; 0 where it is not significant
    std::int64_t from = 0;    // ns on the own clock
    std::int64_t spread = 0;  // median of |difference - fit|, ns
};

inline constexpr std::size_t kPairsForDrift = 20;
inline constexpr std::int64_t kSpanForDrift = 10'000'000'000;  // ns

// The lower of the two middle values where their number is even; 0 for an empty list. Reorders `values`.
std::int64_t median(std::vector<std::int64_t>& values);

// With `may_drift`, a drift is fitted where at least kPairsForDrift pairs span at least kSpanForDrift and it
// moves the clock over that span by more than the spread. `pairs` must not be empty.
ClockFit fit_clock(std::span<const ClockPair> pairs, bool may_drift);

}  // namespace shardscope::traces
