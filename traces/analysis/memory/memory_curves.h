// Bytes over time as step functions: a rank's total allocated bytes, its largest value in any interval, and
// the counters of the pool that it allocates from. Complements memory_curve(), which has the categories.
// Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/memory/memory.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// A value applies until the next one; before the first it is 0.
struct ByteCurve {
    std::vector<std::int64_t> time, bytes;  // sorted by time; equal times in the order of the trace
    std::size_t size() const { return time.size(); }
    bool empty() const { return time.empty(); }
};

// The total of live bytes of a rank right after each allocation and free.
ByteCurve allocated_curve(const store::Trace& trace, store::RankIndex rank,
                          schema::MemorySpace space = schema::MemorySpace::device);

// The same of all ranks, by index into Trace::ranks, in one pass over the events.
std::vector<ByteCurve> allocated_curves(const store::Trace& trace,
                                        schema::MemorySpace space = schema::MemorySpace::device);

// The part of memory_curve() in the time that memory_report() uses for this selection: from the first
// selected step's host start to the last one's host end, within the range. Its first and last points are the
// states at the start and end of that time; the whole curve if nothing is selected.
std::vector<MemoryPoint> selected_memory_curve(const store::Trace& trace, store::RankIndex rank,
                                               const Selection& selection,
                                               schema::MemorySpace space = schema::MemorySpace::device);

// Device memory as counted by the recorder of a run; each curve is empty if it was not recorded.
struct PoolCurves {
    ByteCurve reserved;   // reserved by the caching allocator
    ByteCurve active;     // memory counts until the last stream has used it
    ByteCurve allocated;  // in the host program's order, if the memory events contain active bytes
};
PoolCurves pool_curves(const store::Trace& trace, store::RankIndex rank);

// Counters of the device memory pool, as the recorder of a run names them.
inline constexpr std::string_view kReservedCounter = "reserved_bytes";  // memory that the pool holds
inline constexpr std::string_view kActiveCounter = "active_bytes";      // until the last stream has used it

inline constexpr std::string_view kAllocatedCounter =
    "allocated_bytes";  // in the host program's order, where
                        // memory events contain active bytes

// A counter's value as bytes. Impossible values (negative, not a number, over 2^56) occur only in damaged
// files and are clamped to the valid range.
std::int64_t counter_bytes(double value);

// The values of one counter of one rank over time.
class CounterCurve {
  public:
    CounterCurve(const store::Trace& trace, store::RankIndex rank, std::string_view name);

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

// The largest allocated total of one rank in any time interval: a segment tree over its allocations and
// frees. Building takes O(n), a query O(log n).
class PeakIndex {
  public:
    PeakIndex(const store::Trace& trace, store::RankIndex rank,
              schema::MemorySpace space = schema::MemorySpace::device);

    // The largest total at any instant of [start, end), including the one at `start`.
    std::int64_t most(std::int64_t start, std::int64_t end) const;

  private:
    std::vector<std::int64_t> times_;
    std::vector<std::int64_t> tree_;  // leaves from times_.size() on: the total after each row
};

}  // namespace shardscope::traces::analysis
