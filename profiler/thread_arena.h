// The memory of one in-process log: an arena of chunks in a stretch of anonymous pages, reserved whole and
// touched chunk by chunk as it is needed. Owns the mapping.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/chunk_arena.h"
#include "profiler/record.h"

namespace shardscope::profiler {

class ThreadArena {
  public:
    static constexpr std::uint32_t kChunkBytes = 256u << 10;

    // At least two chunks. Throws std::bad_alloc when the address space cannot be had.
    explicit ThreadArena(std::size_t max_bytes);
    ~ThreadArena();
    ThreadArena(const ThreadArena&) = delete;
    ThreadArena& operator=(const ThreadArena&) = delete;

    ChunkArena& arena() { return arena_; }
    ArenaControl* control() { return &control_; }
    std::byte* base() { return base_; }
    std::uint32_t max_chunks() const { return max_chunks_; }

  private:
    static bool touch(void* self, std::uint32_t index);

    std::uint32_t max_chunks_;
    std::byte* base_ = nullptr;
    ArenaControl control_{};
    ChunkArena arena_;
};

}  // namespace shardscope::profiler
