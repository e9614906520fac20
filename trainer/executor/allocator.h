// A caching allocator of one rank, as PyTorch's: blocks are freed in host order, kept, and handed out again
// when no stream can still be using them. Belongs to the rank's host thread.
//
// Three counts per space, in bytes: allocated (of buffers between allocate and free, in host program order),
// active (those and freed ones whose last stream use is not over yet) and reserved (of all blocks).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <queue>
#include <vector>

#include "trainer/device/memory_device.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::executor {

struct MemoryBlock {
    std::byte* data = nullptr;
    std::int64_t capacity = 0;
    plan::MemorySpace space = plan::MemorySpace::device;
    std::array<std::uint64_t, plan::kStreams>
        last_use{};                 // sequence of the latest item of each stream that uses it
    std::uint64_t last_poison = 0;  // sequence of the block's latest poisoning
    // Used by the allocator only:
    std::int64_t bytes = 0;  // requested by the buffer that has it, or had it last
    std::uint32_t turn = 0;  // counts its allocations and frees
    // Freed and counted as active: the first stream whose last use is not over yet; -1: none.
    int lingers_for = -1;
    std::size_t index = 0;  // in the allocator's list
};

// Thrown when run.memory_limit is reached (what() says so) or the system has no more memory.
class PoolExhausted : public std::bad_alloc {
  public:
    PoolExhausted(bool by_limit) : by_limit_(by_limit) {}
    bool by_limit() const { return by_limit_; }
    const char* what() const noexcept override { return "the pool cannot grow"; }

  private:
    bool by_limit_;
};

struct AllocatorOptions {
    std::int64_t device_limit = 0;           // maximum of reserved device bytes; 0: no limit
    device::StreamIndex poison_stream = -1;  // >= 0: see TestSettings::poison; a stream of its own
};

class Allocator {
  public:
    // `streams`: the rank's streams, in the order of Stream.
    Allocator(device::MemoryDevice& device, int rank, std::array<device::StreamIndex, plan::kStreams> streams,
              AllocatorOptions options = {})
        : device_(device), rank_(rank), streams_(streams), options_(options) {}
    ~Allocator();
    Allocator(const Allocator&) = delete;
    Allocator& operator=(const Allocator&) = delete;

    // Returns a block that `stream` uses first (host: the host thread, immediately). Where the pool would
    // have to grow beyond its limit, cached blocks are first returned to the system, once the streams are
    // done with them. Throws PoolExhausted.
    MemoryBlock* allocate(std::int64_t bytes, plan::MemorySpace space, plan::Stream stream);
    void free(MemoryBlock* block);
    void used(MemoryBlock* block, plan::Stream stream, std::uint64_t sequence) {
        block->last_use[static_cast<std::size_t>(stream)] = sequence;
    }

    std::int64_t allocated_bytes(plan::MemorySpace space) const { return count(space).allocated; }
    std::int64_t active_bytes(plan::MemorySpace space) const { return count(space).active; }
    std::int64_t reserved_bytes(plan::MemorySpace space) const { return count(space).reserved; }
    std::int64_t peak_active_bytes(plan::MemorySpace space) const { return count(space).peak_active; }
    std::int64_t peak_reserved_bytes(plan::MemorySpace space) const { return count(space).peak_reserved; }
    // Notes which stream uses are over by now; allocate and free do so too.
    void settle();
    // True if the last allocate() had to take new memory from the system.
    bool grew() const { return grew_; }

  private:
    struct Counts {
        std::int64_t allocated = 0, active = 0, reserved = 0;
        std::int64_t peak_active = 0, peak_reserved = 0;
    };
    struct Lingerer {  // a freed block and the item of one stream that it waits for
        std::uint64_t sequence = 0;
        std::uint32_t turn = 0;
        MemoryBlock* block = nullptr;
        bool operator>(const Lingerer& other) const { return sequence > other.sequence; }
    };
    using Lingerers = std::priority_queue<Lingerer, std::vector<Lingerer>, std::greater<>>;

    Counts& count(plan::MemorySpace space) { return counts_[static_cast<std::size_t>(space)]; }
    const Counts& count(plan::MemorySpace space) const { return counts_[static_cast<std::size_t>(space)]; }
    bool reusable(const MemoryBlock& block, plan::Stream stream) const;
    int first_unfinished(const MemoryBlock& block, int first_stream) const;
    MemoryBlock* take_cached(std::int64_t size, plan::MemorySpace space, plan::Stream stream);
    MemoryBlock* grow(std::int64_t size, plan::MemorySpace space);
    bool has_room(std::int64_t size, plan::MemorySpace space) const;
    std::byte* from_system(std::int64_t size, plan::MemorySpace space) const;
    void give_back_cached(plan::MemorySpace space, std::int64_t size);
    void release(MemoryBlock* block);
    void linger(MemoryBlock* block, int first_stream);
    void poison(MemoryBlock* block);

    device::MemoryDevice& device_;
    int rank_;
    std::array<device::StreamIndex, plan::kStreams> streams_;
    AllocatorOptions options_;
    std::vector<std::unique_ptr<MemoryBlock>> blocks_;
    std::array<std::multimap<std::int64_t, MemoryBlock*>, traces::schema::kMemorySpaces>
        cached_;                                       // by capacity
    std::array<Lingerers, plan::kStreams> lingering_;  // by stream
    std::array<Counts, traces::schema::kMemorySpaces> counts_{};
    bool grew_ = false;
};

}  // namespace shardscope::trainer::executor
