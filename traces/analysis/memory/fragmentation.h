// How the caching allocator's memory lies at one instant: what it holds, what of it lives, and how large a
// block it could give without asking the device. Sizes in bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::traces {

struct Trace;

struct Fragmentation {
    std::int64_t held_bytes = 0;    // in segments
    std::int64_t segments = 0;      // ranges of addresses
    std::int64_t free_bytes = 0;    // of that, in no live block
    std::int64_t free_blocks = 0;   // stretches of free bytes
    std::int64_t largest_free = 0;  // the longest: no larger allocation fits without a new segment
    // 100 (1 - largest / free): 0 where all that is free is one block, 100 where it is dust.
    double percent() const {
        return free_bytes > 0
                   ? 100.0 * (1.0 - static_cast<double>(largest_free) / static_cast<double>(free_bytes))
                   : 0.0;
    }
};

// At `time` on a rank (index into Trace::ranks), whose live allocations are the rows `live` of Trace::memory.
// A block takes its bytes rounded up to 512, as PyTorch's caching allocator rounds them. Segments that only
// touch count as one where the allocator's segments can grow (`allocator.expandable_segments`). All 0 where
// the trace tells no segments.
Fragmentation fragmentation_at(const Trace& trace, int rank_index, std::int64_t time,
                               const std::vector<std::uint32_t>& live);

}  // namespace shardscope::traces
