// Appends one thread's records to chunks of an arena. The hot path is a compare, the stores of the record and
// one release store. When no chunk is free the record is lost, and counted; a GapRecord tells the reader when
// recording continues. One thread at a time; no exceptions, no heap (the injected library uses it as it is).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/base/clock.h"
#include "profiler/base/record.h"
#include "profiler/log/chunk_arena.h"

namespace shardscope::profiler {

class LogWriter {
  public:
    void init(ChunkArena* arena, std::uint32_t log, std::uint32_t tid, ClockSource clock) {
        arena_ = arena;
        log_ = log;
        tid_ = tid;
        clock_ = clock;
        next_chunk();
    }

    Ticks now() const { return read_ticks(clock_); }
    std::uint32_t log() const { return log_; }
    std::uint32_t tid() const { return tid_; }
    // Any thread.
    std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

    // Space for a record of `bytes` (a multiple of 8), header filled in; the caller fills the rest and then
    // calls publish(). nullptr: the record is lost. `depth` is for records that end ranges: if lost, open
    // ranges of this depth or deeper are in doubt. `counts`: whether its loss counts as a lost event.
    template <typename Record>
    Record* begin(RecordKind kind, std::uint32_t name, std::size_t bytes = sizeof(Record),
                  std::uint64_t depth = ~std::uint64_t{0}, bool counts = true) {
        if (static_cast<std::size_t>(end_ - cursor_) < bytes) [[unlikely]] {
            if (!make_room(bytes)) {
                lose(depth, counts);
                return nullptr;
            }
        }
        return place<Record>(kind, name, bytes);
    }

    // Whether such a record fits into the current chunk and the clock is read without a call. If so, place()
    // and counter() can replace begin() and now().
    bool is_ready(std::size_t bytes) const {
        return static_cast<std::size_t>(end_ - cursor_) >= bytes && clock_ == ClockSource::counter;
    }
    template <typename Record>
    Record* place(RecordKind kind, std::uint32_t name, std::size_t bytes = sizeof(Record)) {
        auto* record = reinterpret_cast<Record*>(cursor_);
        cursor_ += bytes;
        fetch_for_writing(cursor_ + kAhead);
        record->header = {static_cast<std::uint16_t>(bytes), kind, 0, name};
        return record;
    }
    static Ticks counter() { return read_ticks(ClockSource::counter); }

    void publish() {
        chunk_->used.store(static_cast<std::uint64_t>(cursor_ - chunk_data(chunk_)),
                           std::memory_order_release);
    }

    // Counts a record as lost that is omitted because no chunk could hold it. Open ranges are not in doubt,
    // and recording continues.
    void leave_out() {
        const std::uint64_t total = dropped_.load(std::memory_order_relaxed) + 1;
        dropped_.store(total, std::memory_order_relaxed);
        if (chunk_ != nullptr) {
            chunk_->dropped.store(total, std::memory_order_release);
        } else if (!closed_) {
            arena_->control().lost.fetch_add(1, std::memory_order_relaxed);
        }
    }

    // Ends the log: its last chunk passes to the reader.
    void finish() {
        if (chunk_ == nullptr) return;
        if (gap_count_ == 0 || make_room(0)) ChunkArena::seal(chunk_);
        chunk_ = nullptr;
        cursor_ = end_ = nullptr;
        closed_ = true;
    }

  private:
    // The reader's core has touched the chunk since it was last written: fetching its cache lines back takes
    // longer than filling them, so the fetch starts ahead of the writes.
    static constexpr std::size_t kAhead = 512;
    static void fetch_for_writing(const std::byte* address) {
#if defined(__x86_64__)
        asm volatile("prefetchw %0" : : "m"(*address));  // does nothing on processors that do not know it
#else
        __builtin_prefetch(address, 1);
#endif
    }

    // Takes a new chunk with at least `bytes` free, and writes the GapRecord first if there was a gap.
    [[gnu::noinline]] bool make_room(std::size_t bytes) {
        if (closed_ || bytes + sizeof(GapRecord) > arena_->capacity()) return false;
        // While records are being lost, looks for a chunk only after the reader has freed one.
        if (gap_count_ != 0 &&
            arena_->control().released.load(std::memory_order_relaxed) == released_when_lost_) {
            return false;
        }
        released_when_lost_ = arena_->control().released.load(std::memory_order_relaxed);
        if (!next_chunk()) return false;
        if (gap_count_ != 0) {
            auto* gap = reinterpret_cast<GapRecord*>(cursor_);
            cursor_ += sizeof(GapRecord);
            *gap = {{sizeof(GapRecord), RecordKind::gap, 0, 0}, gap_ticks_, gap_count_, gap_min_depth_};
            publish();
            gap_count_ = 0;
        }
        return true;
    }

    bool next_chunk() {
        ChunkHeader* next = arena_->acquire(log_, tid_, sequence_);
        if (next == nullptr) return false;
        const std::uint64_t dropped_so_far = dropped_.load(std::memory_order_relaxed);
        // From now on the chunk's header counts this log's losses (so far lose() counted them in the arena).
        if (sequence_ == 0) arena_->control().lost.fetch_sub(dropped_so_far, std::memory_order_relaxed);
        next->dropped.store(dropped_so_far, std::memory_order_relaxed);
        ++sequence_;
        if (chunk_ != nullptr) ChunkArena::seal(chunk_);
        chunk_ = next;
        cursor_ = chunk_data(next);
        end_ = cursor_ + arena_->capacity();
        return true;
    }

    [[gnu::noinline]] void lose(std::uint64_t depth, bool counts) {
        const std::uint64_t total =
            dropped_.load(std::memory_order_relaxed) + (counts ? 1 : 0);  // this thread alone writes it
        dropped_.store(total, std::memory_order_relaxed);
        if (gap_count_++ == 0) {
            gap_ticks_ = now();
            gap_min_depth_ = depth;
            cursor_ = end_;  // smaller records must not slip in after the lost one
        } else if (depth < gap_min_depth_) {
            gap_min_depth_ = depth;
        }
        if (chunk_ == nullptr) {
            if (!closed_ && counts) arena_->control().lost.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        chunk_->gap_min_depth.store(gap_min_depth_, std::memory_order_relaxed);
        chunk_->gap_ticks.store(gap_ticks_.count, std::memory_order_relaxed);
        chunk_->dropped.store(total, std::memory_order_release);
    }

    std::byte* cursor_ = nullptr;  // the next record goes here
    std::byte* end_ = nullptr;
    ChunkHeader* chunk_ = nullptr;
    ClockSource clock_ = ClockSource::monotonic;
    bool closed_ = false;
    ChunkArena* arena_ = nullptr;
    std::uint32_t log_ = 0, tid_ = 0;
    std::uint64_t sequence_ = 0;
    std::uint32_t released_when_lost_ = 0;
    Ticks gap_ticks_{0};
    std::uint64_t gap_count_ = 0, gap_min_depth_ = 0;
    std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace shardscope::profiler
