// Bytes over time as plain steps: a rank's total allocated bytes, and the counters of the pool that it
// allocates from. Complements memory_curve(), which has the categories. Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/memory/memory.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

// A value applies until the next one; before the first it is 0.
struct ByteCurve {
    std::vector<std::int64_t> time, bytes;  // sorted by time; equal times in the order of the trace
    std::size_t size() const { return time.size(); }
    bool empty() const { return time.empty(); }
};

// The total of live bytes of a rank right after each allocation and free.
ByteCurve allocated_curve(const Trace& trace, RankPlace rank, MemorySpace space = MemorySpace::device);

// The part of memory_curve() in the time that memory_report() uses for this selection: from the first
// selected step's host start to the last one's host end, within the range. Its first and last points are the
// states at the start and end of that time; the whole curve if nothing is selected.
std::vector<MemoryPoint> selected_memory_curve(const Trace& trace, RankPlace rank, const Selection& selection,
                                               MemorySpace space = MemorySpace::device);

// Device memory as counted by the recorder of a run; each curve is empty if it was not recorded.
struct PoolCurves {
    ByteCurve reserved;   // reserved by the caching allocator
    ByteCurve active;     // counts until the last stream has used it
    ByteCurve allocated;  // in the host program's order, if the memory events contain active bytes
};
PoolCurves pool_curves(const Trace& trace, RankPlace rank);

}  // namespace shardscope::traces
