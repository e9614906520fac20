// Bytes over time as plain steps: what a rank has allocated in all, and what is told of the pool that it
// allocates from. Beside memory_curve(), which tells the categories. Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/memory/memory.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

// A value holds until the next one; before the first it is 0.
struct ByteCurve {
    std::vector<std::int64_t> time, bytes;  // sorted by time, equal times in the order of the trace
    std::size_t size() const { return time.size(); }
    bool empty() const { return time.empty(); }
};

// The total of live bytes of a rank (index into Trace::ranks) right after each allocation and free.
ByteCurve allocated_curve(const Trace& trace, int rank_index, MemorySpace space = MemorySpace::device);

// The part of memory_curve() in the time that memory_report() looks at for this selection: from the first
// selected step's host start to the last one's host end, within the range. Its first point is the state when
// that begins and its last the state when it ends, at those times; the whole curve where nothing is selected.
std::vector<MemoryPoint> selected_memory_curve(const Trace& trace, int rank_index, const Selection& selection,
                                               MemorySpace space = MemorySpace::device);

// Device memory as the recorder of a run counted it; each empty where it was not recorded.
struct PoolCurves {
    ByteCurve reserved;   // what the caching allocator holds
    ByteCurve active;     // until the last stream has used it
    ByteCurve allocated;  // in the host program's order, where the memory events tell active bytes
};
PoolCurves pool_curves(const Trace& trace, int rank_index);

}  // namespace shardscope::traces
