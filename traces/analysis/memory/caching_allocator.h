// PyTorch's caching allocator as a model: which memory it takes from the device, splits, merges, caches and
// gives back for a sequence of allocations and frees. The rules and their sources: docs/allocator.md.
//
// A value: a copy continues on its own, so that a request can be tried. Sizes in bytes. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/analysis/memory/allocator_settings.h"

namespace shardscope::traces::analysis {

// A part of a segment that exists before the first event.
struct AllocatorPiece {
    enum class State : std::uint8_t { cached, used, unmapped };
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    State state = State::cached;
    std::uint64_t id = 0;  // of the allocation, if it is used
};

// The pool and the stream that a segment belongs to. Requests up to 1 MiB and larger ones have pools of their
// own, and so has each private pool (of CUDA graphs); 0 is the common one.
struct AllocatorPlace {
    int stream = 0, pool = 0;
    bool small = false;
    bool operator<(const AllocatorPlace& other) const {
        return std::tie(stream, pool, small) < std::tie(other.stream, other.pool, other.small);
    }
};

// Memory taken from the device (bytes > 0) or returned to it (bytes < 0).
struct SegmentChange {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    int stream = 0;
};

struct ReservedSegment {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    AllocatorPlace place;
};

struct AllocatorState {
    std::int64_t reserved = 0;
    std::int64_t allocated = 0;  // in blocks, as torch.cuda.memory_allocated() counts; includes pending frees
    std::int64_t segments = 0, free_blocks = 0;
    std::int64_t largest_free = 0;

    std::int64_t cached() const { return reserved - allocated; }
};

class CachingAllocator {
  public:
    // No device has 16 TiB: a larger request fails.
    static constexpr std::int64_t kMostRequested = std::int64_t{1} << 44;

    // `limit`: the most that the device can give; 0: any amount.
    explicit CachingAllocator(const AllocatorSettings& settings, std::int64_t limit = 0)
        : settings_(settings), limit_(limit) {}
    void set_limit(std::int64_t limit) { limit_ = limit; }

    // A segment that exists already; its pieces adjoin. For expandable segments the pieces of one place that
    // can grow into one another.
    void add_segment(const AllocatorPlace& place, std::span<const AllocatorPiece> pieces, bool expandable);
    // The next new segment of this size and stream will have this address. Others get made-up ones: they only
    // decide between blocks of equal size.
    void offer_address(std::int64_t bytes, int stream, std::uint64_t address);

    // False if the device has not enough left, even without cached blocks. `id` names the allocation until it
    // is freed; an id that is in use is freed first.
    bool allocate(std::uint64_t id, std::int64_t bytes, int stream, int pool = 0);
    void free(std::uint64_t id);  // without effect if it is not allocated
    // The program has freed it, but a stream still uses it: it is free after free(), or when the allocator
    // waits for the streams to release cached blocks.
    void request_free(std::uint64_t id);
    void empty_cache();

    std::uint64_t address_of(std::uint64_t id) const;  // 0: not allocated
    AllocatorState state() const;
    std::int64_t reserved() const { return reserved_; }
    std::int64_t allocated() const { return allocated_; }
    // How often cached blocks were released because the device had too little memory left.
    std::int64_t retries() const { return retries_; }
    std::vector<ReservedSegment> segments() const;                          // by address
    const std::vector<SegmentChange>& changes() const { return changes_; }  // in order, without initial ones

  private:
    using State = AllocatorPiece::State;
    using Index = std::int32_t;
    static constexpr Index kNone = -1;

    struct Block {
        std::uint64_t address = 0;
        std::int64_t bytes = 0;
        std::int64_t cached_since = 0;  // Pool::searches when it was cached
        std::uint64_t base = 0;         // of an expandable segment: its first address
        int stream = 0;
        std::uint32_t pool = 0;  // of pools_
        Index before = kNone, after = kNone;
        State state = State::cached;
        bool expandable = false;
    };
    using BySize = std::tuple<int, std::int64_t, std::uint64_t, Index>;  // stream, bytes, address, block
    using ByAddress = std::tuple<int, std::uint64_t, Index>;

    struct Pool {
        int owner = 0;
        bool small = false;
        std::set<BySize> cached;
        std::set<ByAddress> unmapped;
        std::int64_t searches = 0;

        std::int64_t page() const;
    };

    Block& at(Index block) { return blocks_[static_cast<std::size_t>(block)]; }
    const Block& at(Index block) const { return blocks_[static_cast<std::size_t>(block)]; }
    Pool& pool_of(Index block) { return pools_[at(block).pool]; }

    std::uint32_t find_pool(int owner, bool small);
    Index new_block(const Block& block);
    void put_back(Index block);  // into the list of its state
    void take_out(Index block);
    void link_after(Index block, Index added);
    void cut(Index block, std::int64_t bytes);  // the rest becomes a block of the same state, put back
    void merge(Index block, Index neighbour);
    void merge_neighbours(Index block);
    bool is_whole(Index block) const;
    bool has_room(std::int64_t bytes) const;
    void note(std::uint64_t address, std::int64_t bytes, int stream);
    std::uint64_t new_address(std::int64_t bytes, int stream);

    Index find_cached(Pool& pool, std::int64_t bytes, int stream) const;
    std::int64_t growable(Index block) const;
    Index grow(std::uint32_t pool, std::int64_t bytes, int stream);
    bool should_split(const Block& block, std::int64_t bytes) const;
    bool release_oversize(Pool& pool, std::int64_t bytes, int stream);
    void release(Index block);
    void collect_garbage();

    // Expandable segments: caching_allocator_pages.cpp.
    Index grow_pages(std::uint32_t pool, std::int64_t bytes, int stream);
    Index find_pages(std::uint32_t pool, std::int64_t bytes, int stream);
    bool map(Index block, std::int64_t bytes);
    void unmap(Index block);
    bool is_mapped(Index block) const { return block != kNone && at(block).state != State::unmapped; }

    AllocatorSettings settings_;
    std::int64_t limit_;
    std::vector<Block> blocks_;
    std::vector<Index> unused_;  // of blocks_
    std::vector<Pool> pools_;
    std::map<std::pair<int, bool>, std::uint32_t> pool_index_;  // of pools_, by owner and small
    std::unordered_map<std::uint64_t, Index> live_;             // by id
    std::set<std::uint64_t> pending_;                           // ids whose free is requested
    std::map<std::pair<std::int64_t, int>, std::deque<std::uint64_t>> offered_;
    std::uint64_t next_address_ = std::uint64_t{1} << 57;  // beyond those of any device
    std::int64_t reserved_ = 0, allocated_ = 0, segments_ = 0, retries_ = 0;
    std::vector<SegmentChange> changes_;
};

}  // namespace shardscope::traces::analysis
