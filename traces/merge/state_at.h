// State that began before a slice and lasts into it, so that curves are right from its start: live
// allocations and the last values of counters. Their rows are written with the time of the slice's start.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/merge/part.h"
#include "traces/merge/slice_windows.h"

namespace shardscope::traces::merge {

// Ids (rowid) of the rows of SHARD_MEMORY, SHARD_SEGMENTS, CUDA_GPU_MEMORY_USAGE_EVENTS and SHARD_COUNTERS
// that are before the first window of their owner and still hold when it begins. Sorted by id.
std::vector<std::int64_t> live_allocations(Part& part, const SliceWindows& windows);
std::vector<std::int64_t> live_segments(Part& part, const SliceWindows& windows);
std::vector<std::int64_t> live_cuda_allocations(Part& part, const SliceWindows& windows);
std::vector<std::int64_t> last_values(Part& part, const SliceWindows& windows);

// The start of the owner's first window; the lowest number if it has no window or the whole trace.
std::int64_t beginning(const SliceWindows::Windows& windows);
// From that start to the end of the last window: changes of state between windows are kept, or totals would
// not add up.
Window whole(const SliceWindows::Windows& windows);

}  // namespace shardscope::traces::merge
