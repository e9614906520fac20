// The values of one counter of one rank over time. Internal to the room. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/intervals.h"

namespace shardscope::traces {

struct Trace;

// What the recorder of a run tells about the pool of device memory, under these names.
inline constexpr std::string_view kReservedCounter = "reserved_bytes";  // what the pool holds
inline constexpr std::string_view kActiveCounter = "active_bytes";      // until the last stream has used it

inline constexpr std::string_view kAllocatedCounter =
    "allocated_bytes";  // in the host program's order, where
                        // memory events tell active bytes

// A counter's value as bytes. Values that no memory has (negative, not a number, over 2^56) come from damaged
// files only and are drawn to the nearest that one has.
std::int64_t counter_bytes(double value);

class CounterCurve {
  public:
    // `rank_index` is an index into Trace::ranks.
    CounterCurve(const Trace& trace, int rank_index, std::string_view name);

    bool empty() const { return times_.empty(); }  // never recorded
    // The value in force at `time`; 0 before the first one.
    double at(std::int64_t time) const;

    struct Extreme {
        double value = 0;
        std::int64_t time = 0;  // when it was first reached in the interval
    };
    // The largest value in force at any instant of the interval.
    Extreme most(const Interval& interval) const;

    // When the value in force is `value`, within the interval.
    IntervalSet when(double value, const Interval& interval) const;

  private:
    std::vector<std::int64_t> times_;  // sorted; of equal times the last one holds
    std::vector<double> values_;
};

}  // namespace shardscope::traces
