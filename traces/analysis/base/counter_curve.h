// The values of one counter of one rank over time. Internal to the library. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

// Counters of the device memory pool, as the recorder of a run names them.
inline constexpr std::string_view kReservedCounter = "reserved_bytes";  // memory that the pool holds
inline constexpr std::string_view kActiveCounter = "active_bytes";      // until the last stream has used it

inline constexpr std::string_view kAllocatedCounter =
    "allocated_bytes";  // in the host program's order, where
                        // memory events contain active bytes

// A counter's value as bytes. Impossible values (negative, not a number, over 2^56) occur only in damaged
// files and are clamped to the valid range.
std::int64_t counter_bytes(double value);

class CounterCurve {
  public:
    CounterCurve(const Trace& trace, RankPlace rank, std::string_view name);

    bool empty() const { return times_.empty(); }  // never recorded
    // The value at `time`; 0 before the first one.
    double at(std::int64_t time) const;

    struct Extreme {
        double value = 0;
        std::int64_t time = 0;  // when it was first reached in the interval
    };
    // The largest value at any instant of the interval.
    Extreme most(const Interval& interval) const;

    // The times within the interval at which the counter has `value`.
    IntervalSet when(double value, const Interval& interval) const;

  private:
    std::vector<std::int64_t> times_;  // sorted; of equal times the last one counts
    std::vector<double> values_;
};

}  // namespace shardscope::traces
