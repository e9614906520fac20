// A bounded set of equal chunks (record.h) in one stretch of memory: writers take free ones, the reader
// returns them. Used in memory by the recorder and over a shared file by the injected library, which links
// no C++ runtime: nothing here allocates from the heap or throws.
//
// Memory: the caller reserves `max_chunks * chunk_bytes` of address space at `base`; `grow` makes further
// chunks of it usable. acquire() is the slow path of a log, once per chunk: it takes a spin lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sched.h>

#include "profiler/base/record.h"

namespace shardscope::profiler {

class SpinLock {
  public:
    void lock() {
        while (held_.exchange(true, std::memory_order_acquire)) ::sched_yield();
    }
    void unlock() { held_.store(false, std::memory_order_release); }
    void reset() { held_.store(false, std::memory_order_relaxed); }  // in a forked child

  private:
    std::atomic<bool> held_{false};
};

class ChunkArena {
  public:
    // Makes chunk number `index` (the first that does not exist yet) usable; false when it cannot.
    using Grow = bool (*)(void* context, std::uint32_t index);

    // Call init() once before use: an arena of zeros has nothing to acquire. `control` outlives the arena.
    void init(std::byte* base, std::uint32_t chunk_bytes, std::uint32_t max_chunks, ArenaControl* control,
              Grow grow, void* context) {
        base_ = base;
        chunk_bytes_ = chunk_bytes;
        max_chunks_ = max_chunks;
        control_ = control;
        grow_ = grow;
        context_ = context;
        none_free_ = false;
    }

    // A free chunk, made active for that log, or nullptr when all are in use and no more can be made.
    ChunkHeader* acquire(std::uint32_t log, std::uint32_t tid, std::uint64_t sequence) {
        lock_.lock();
        ChunkHeader* found = find_free();
        if (found == nullptr) found = extend();
        if (found != nullptr) {
            found->log = log;
            found->tid = tid;
            found->sequence = sequence;
            found->used.store(0, std::memory_order_relaxed);
            found->dropped.store(0, std::memory_order_relaxed);
            found->gap_ticks.store(0, std::memory_order_relaxed);
            found->gap_min_depth.store(0, std::memory_order_relaxed);
            found->state.store(ChunkState::active, std::memory_order_release);
        }
        lock_.unlock();
        return found;
    }

    // Makes sure that one chunk is free, so that the next acquire() is quick. For the reader's thread.
    void provide_spare() {
        lock_.lock();
        if (find_free() == nullptr && extend() != nullptr) none_free_ = false;
        lock_.unlock();
    }

    // Hands out no further chunks.
    void close() {
        lock_.lock();
        max_chunks_ = 0;
        lock_.unlock();
    }

    // Ends the use of a chunk by its owner; the reader frees it once it has read it.
    static void seal(ChunkHeader* chunk) {
        chunk->state.store(ChunkState::sealed, std::memory_order_release);
    }

    ChunkHeader* chunk(std::uint32_t index) const {
        return reinterpret_cast<ChunkHeader*>(base_ + std::size_t{index} * chunk_bytes_);
    }
    std::size_t capacity() const { return chunk_bytes_ - sizeof(ChunkHeader); }
    ArenaControl& control() const { return *control_; }
    void unlock_in_child() { lock_.reset(); }

  private:
    // Tries a few low chunks first, so that a program that writes little stays in warm memory; then continues
    // where the last search ended, since the reader frees chunks in that order. A search that found nothing
    // is not repeated until the reader has freed a chunk.
    ChunkHeader* find_free() {
        const std::uint32_t released = control_->released.load(std::memory_order_acquire);
        if (max_chunks_ == 0 || (none_free_ && released == none_free_at_)) return nullptr;
        const std::uint32_t count = control_->chunks.load(std::memory_order_relaxed);
        for (std::uint32_t i = 0; i < count && i < kWarm; ++i) {
            if (is_free(i)) return chunk(i);
        }
        for (std::uint32_t looked = kWarm; looked < count; ++looked) {
            if (next_ < kWarm || next_ >= count) next_ = kWarm;
            const std::uint32_t index = next_++;
            if (is_free(index)) return chunk(index);
        }
        none_free_ = true;
        none_free_at_ = released;
        return nullptr;
    }

    bool is_free(std::uint32_t index) const {
        return chunk(index)->state.load(std::memory_order_acquire) == ChunkState::free;
    }

    ChunkHeader* extend() {
        const std::uint32_t count = control_->chunks.load(std::memory_order_relaxed);
        if (count >= max_chunks_ || !grow_(context_, count)) return nullptr;
        // New memory is zero, so the chunk's state is free already.
        control_->chunks.store(count + 1, std::memory_order_release);
        return chunk(count);
    }

    SpinLock lock_;
    std::byte* base_ = nullptr;
    std::uint32_t chunk_bytes_ = 0, max_chunks_ = 0;
    ArenaControl* control_ = nullptr;
    Grow grow_ = nullptr;
    static constexpr std::uint32_t kWarm = 8;
    std::uint32_t next_ = 0;  // where the next search begins, after the warm ones
    bool none_free_ = false;  // no chunk was free when none_free_at_ had been released
    std::uint32_t none_free_at_ = 0;
    void* context_ = nullptr;
};

}  // namespace shardscope::profiler
