// What a source says of its memory events beside the rows, and how a reader finds it again.
#pragma once

#include <string_view>

namespace shardscope::traces {

// SHARD_RUN: which bytes the memory events add up to. "active": until the last stream has used them (memory
// snapshots of PyTorch); absent: allocated, in the order of the host's program.
inline constexpr std::string_view kMemoryCountedKey = "memory.counted", kMemoryCountedActive = "active";

// How the text of a diagnostic begins that tells of a failed allocation: "Out of memory on rank 3: ...".
inline constexpr std::string_view kOutOfMemory = "Out of memory on rank ";

}  // namespace shardscope::traces
