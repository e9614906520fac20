// The state of the caching allocator's memory at one instant: what is reserved, how much of it is live, and
// the largest block available without asking the device. Sizes in bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::traces {

struct Trace;

struct Fragmentation {
    std::int64_t held_bytes = 0;    // reserved, in segments
    std::int64_t segments = 0;      // number of address ranges
    std::int64_t free_bytes = 0;    // of the reserved bytes, those in no live block
    std::int64_t free_blocks = 0;   // number of contiguous free stretches
    std::int64_t largest_free = 0;  // the longest stretch: no larger allocation fits without a new segment
    // 100 (1 - largest / free): 0 if all free memory is one block, near 100 if it is in small pieces.
    double percent() const {
        return free_bytes > 0
                   ? 100.0 * (1.0 - static_cast<double>(largest_free) / static_cast<double>(free_bytes))
                   : 0.0;
    }
};

// The state at `time` on a rank (index into Trace::ranks) whose live allocations are the rows `live` of
// Trace::memory. A block's size is rounded up to 512, as in PyTorch's caching allocator. Adjacent segments
// count as one if the allocator's segments can grow (`allocator.expandable_segments`). All 0 if the trace has
// no segments.
Fragmentation fragmentation_at(const Trace& trace, int rank_index, std::int64_t time,
                               const std::vector<std::uint32_t>& live);

}  // namespace shardscope::traces
