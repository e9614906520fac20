// What a source says of its memory events beside the rows, and how a reader finds it again.
#pragma once

#include <string_view>

namespace shardscope::traces {

// SHARD_RUN: which bytes the memory events add up to. "active": until the last stream has used them (memory
// snapshots of PyTorch); absent: allocated, in the order of the host's program.
inline constexpr std::string_view kMemoryCountedKey = "memory.counted", kMemoryCountedActive = "active";

// Names of the events that stand for what an allocator's total has and the recorded events do not add up to:
// before the first of them, and later. They have no address.
inline constexpr std::string_view kBeforeTheTrace = "before the trace", kNotInTheTrace = "not in the trace";

// How the text of a diagnostic begins that tells of a failed allocation: "Out of memory on rank 3: ...".
inline constexpr std::string_view kOutOfMemory = "Out of memory on rank ";

}  // namespace shardscope::traces
