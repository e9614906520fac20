// Facts about a source's memory events that are not in the rows, and the keys under which a reader finds
// them.
#pragma once

#include <string_view>

namespace shardscope::traces::store {

// SHARD_RUN: which bytes the memory events add up to. "active": counted until no stream uses them any more
// (PyTorch memory snapshots); absent: allocated bytes, in host order.
inline constexpr std::string_view kMemoryCountedKey = "memory.counted", kMemoryCountedActive = "active";

// Names of the events that stand for the part of an allocator's total that the recorded events do not
// explain: before the first of them, and later. They have no address.
inline constexpr std::string_view kBeforeTheTrace = "before the trace", kNotInTheTrace = "not in the trace";

// MemoryRow::annotation of a memory snapshot's blocks that no event allocates: those that were allocated
// before the recording, and what blocks are larger than their requests.
inline constexpr std::string_view kBeforeRecording = "(before the recording)",
                                  kRoundingOfBlocks = "(rounding of blocks)";

// The beginning of a diagnostic's text about a failed allocation: "Out of memory on rank 3: ...".
inline constexpr std::string_view kOutOfMemory = "Out of memory on rank ";

}  // namespace shardscope::traces::store
