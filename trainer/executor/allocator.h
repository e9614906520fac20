// A caching allocator of one rank, as PyTorch's: blocks are freed in host order, kept, and handed out again
// when no stream can still be using them. Belongs to the rank's host thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "trainer/executor/scheduler.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

struct Block {
    std::byte* data = nullptr;
    std::int64_t capacity = 0;
    MemorySpace space = MemorySpace::device;
    std::array<std::uint64_t, kStreams>
        last_use{};  // sequence of the latest item of each stream that uses it
};

class Allocator {
  public:
    // `streams`: the rank's streams, in the order of Stream.
    Allocator(Scheduler& scheduler, std::array<StreamIndex, kStreams> streams)
        : scheduler_(scheduler), streams_(streams) {}
    ~Allocator();
    Allocator(const Allocator&) = delete;
    Allocator& operator=(const Allocator&) = delete;

    // A block for use on `stream` first (host: by the host thread at once). Throws std::bad_alloc.
    Block* allocate(std::int64_t bytes, MemorySpace space, Stream stream);
    void free(Block* block);
    void used(Block* block, Stream stream, std::uint64_t sequence) {
        block->last_use[static_cast<std::size_t>(stream)] = sequence;
    }

    std::int64_t reserved_bytes(MemorySpace space) const {
        return reserved_[static_cast<std::size_t>(space)];
    }
    // True if the last allocate() had to take new memory from the system.
    bool grew() const { return grew_; }

  private:
    bool reusable(const Block& block, Stream stream) const;

    Scheduler& scheduler_;
    std::array<StreamIndex, kStreams> streams_;
    std::vector<std::unique_ptr<Block>> blocks_;
    std::array<std::multimap<std::int64_t, Block*>, traces::kMemorySpaces> cached_;  // by capacity
    std::array<std::int64_t, traces::kMemorySpaces> reserved_{};
    bool grew_ = false;
};

}  // namespace shardscope::trainer
