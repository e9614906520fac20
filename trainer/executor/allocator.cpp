#include "trainer/executor/allocator.h"

#include <cstring>
#include <new>

namespace shardscope::trainer {

namespace {

constexpr std::int64_t kGranularity = 512;  // PyTorch's smallest block
constexpr std::size_t kAlignment = 4096;

// A cached block may be a quarter larger than asked for; beyond that too much would be wasted.
std::int64_t largest_acceptable(std::int64_t bytes) {
    return bytes + bytes / 4;
}

}  // namespace

Allocator::~Allocator() {
    for (const auto& block : blocks_) ::operator delete (block->data, std::align_val_t{kAlignment});
}

// Order on the stream itself protects a reuse there; any other stream must be past its last use.
bool Allocator::reusable(const Block& block, Stream stream) const {
    for (std::size_t s = 0; s < kStreams; ++s) {
        if (static_cast<int>(s) == static_cast<int>(stream)) continue;
        if (!scheduler_.happened({streams_[s], block.last_use[s]})) return false;
    }
    return true;
}

Block* Allocator::allocate(std::int64_t bytes, MemorySpace space, Stream stream) {
    const std::int64_t size =
        (std::max<std::int64_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
    auto& cached = cached_[static_cast<std::size_t>(space)];
    grew_ = false;
    for (auto it = cached.lower_bound(size); it != cached.end() && it->first <= largest_acceptable(size);
         ++it) {
        Block* block = it->second;
        if (!reusable(*block, stream)) continue;
        cached.erase(it);
        return block;
    }
    auto block = std::make_unique<Block>();
    block->data = static_cast<std::byte*>(
        ::operator new (static_cast<std::size_t>(size), std::align_val_t{kAlignment}));
    std::memset(block->data, 0, static_cast<std::size_t>(size));  // touch the pages here, not inside a kernel
    block->capacity = size;
    block->space = space;
    reserved_[static_cast<std::size_t>(space)] += size;
    grew_ = true;
    blocks_.push_back(std::move(block));
    return blocks_.back().get();
}

void Allocator::free(Block* block) {
    cached_[static_cast<std::size_t>(block->space)].emplace(block->capacity, block);
}

}  // namespace shardscope::trainer
