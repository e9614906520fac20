// The memory of one in-process log: an arena of chunks in a stretch of anonymous pages, reserved whole and
// touched chunk by chunk as needed, within the budget of all logs of a recorder. Owns the mapping.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

#include "profiler/base/record.h"
#include "profiler/log/chunk_arena.h"

namespace shardscope::profiler {

// The memory budget that the logs of one recorder share. Any thread.
class MemoryBudget {
  public:
    explicit MemoryBudget(std::size_t bytes) : left_(static_cast<std::int64_t>(bytes)) {}

    bool take(std::size_t bytes) {
        if (left_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed) >=
            static_cast<std::int64_t>(bytes))
            return true;
        give(bytes);
        return false;
    }
    void give(std::size_t bytes) {
        left_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    }

  private:
    std::atomic<std::int64_t> left_;
};

class ThreadArena {
  public:
    static constexpr std::uint32_t kChunkBytes = 256u << 10;

    // At least two chunks of address space; the budget, which outlives the arena, decides how many become
    // memory. Throws std::bad_alloc if the address space cannot be reserved.
    ThreadArena(std::size_t max_bytes, MemoryBudget& budget);
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
    MemoryBudget& budget_;
    pid_t owner_;  // a forked child gets no further chunk: it has no reader
    std::byte* base_ = nullptr;
    ArenaControl control_{};
    ChunkArena arena_;
};

}  // namespace shardscope::profiler
