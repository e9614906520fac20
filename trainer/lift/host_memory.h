// The memory of a rank that computes on the processor, as that of a device.
#pragma once

#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/store/columns/trace.h"

namespace shardscope::trainer::lift {

// Without the copies of buffers that the library of collectives makes (Gloo's reduce_scatter adds up a whole
// one), of which PyTorch does not record all frees. `library_copies`: when it makes them, by rank index. An
// address that is allocated again although its free was not recorded was such a copy, too, and the events
// that stand for the rest of PyTorch's totals stand for these frees.
traces::MemoryEvents host_memory(const traces::Trace& from,
                                 const std::vector<traces::IntervalSet>& library_copies);

}  // namespace shardscope::trainer::lift
