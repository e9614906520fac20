#include "trainer/executor/allocator.h"

#include <algorithm>
#include <utility>

namespace shardscope::trainer::executor {

namespace {

constexpr std::int64_t kGranularity = 512;  // PyTorch's smallest block

// A cached block may be a quarter larger than the request; beyond that too much would be wasted.
std::int64_t largest_acceptable(std::int64_t bytes) {
    return bytes + bytes / 4;
}

}  // namespace

Allocator::~Allocator() {
    for (const auto& block : blocks_) device_.give_back(rank_, block->space, block->data);
}

// The first stream from `first_stream` on that may still use the block; -1: none.
int Allocator::first_unfinished(const MemoryBlock& block, int first_stream) const {
    for (int s = first_stream; s < plan::kStreams; ++s) {
        const auto i = static_cast<std::size_t>(s);
        if (!device_.happened({streams_[i], block.last_use[i]})) return s;
    }
    return -1;
}

// The order of the stream itself protects a reuse there; any other stream must be past its last use. A
// poisoned block belongs to no stream. What settle() has found need not be asked again: a large pool has many
// blocks that are still in use.
bool Allocator::reusable(const MemoryBlock& block, plan::Stream stream) const {
    const int own = static_cast<int>(stream);
    if (block.lingers_for >= 0 && (block.lingers_for != own || first_unfinished(block, own + 1) >= 0))
        return false;
    return device_.happened({options_.poison_stream, block.last_poison});
}

MemoryBlock* Allocator::allocate(std::int64_t bytes, plan::MemorySpace space, plan::Stream stream) {
    const std::int64_t size =
        (std::max<std::int64_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
    settle();
    MemoryBlock* block = take_cached(size, space, stream);
    grew_ = block == nullptr;
    if (!block) block = grow(size, space);
    Counts& counts = count(space);
    if (std::exchange(block->lingers_for, -1) >= 0) counts.active -= block->bytes;
    ++block->turn;
    block->bytes = bytes;
    counts.allocated += bytes;
    counts.active += bytes;
    counts.peak_active = std::max(counts.peak_active, counts.active);
    return block;
}

void Allocator::free(MemoryBlock* block) {
    settle();
    ++block->turn;
    count(block->space).allocated -= block->bytes;
    linger(block, 0);
    if (options_.poison_stream >= 0) poison(block);
    cached_[static_cast<std::size_t>(block->space)].emplace(block->capacity, block);
}

MemoryBlock* Allocator::take_cached(std::int64_t size, plan::MemorySpace space, plan::Stream stream) {
    auto& cached = cached_[static_cast<std::size_t>(space)];
    for (auto it = cached.lower_bound(size); it != cached.end() && it->first <= largest_acceptable(size);
         ++it) {
        MemoryBlock* block = it->second;
        if (!reusable(*block, stream)) continue;
        cached.erase(it);
        return block;
    }
    return nullptr;
}

// --- growing and shrinking -------------------------------------------------------------------------------

bool Allocator::has_room(std::int64_t size, plan::MemorySpace space) const {
    return space != plan::MemorySpace::device || options_.device_limit == 0 ||
           count(space).reserved + size <= options_.device_limit;
}

// Null where the system has no memory.
std::byte* Allocator::from_system(std::int64_t size, plan::MemorySpace space) const {
    return device_.take(rank_, space, size, options_.poison_stream >= 0);
}

MemoryBlock* Allocator::grow(std::int64_t size, plan::MemorySpace space) {
    if (!has_room(size, space)) give_back_cached(space, size);
    if (!has_room(size, space)) throw PoolExhausted(true);
    auto block = std::make_unique<MemoryBlock>();
    block->data = from_system(size, space);
    if (!block->data) {
        give_back_cached(space, 0);
        block->data = from_system(size, space);
    }
    if (!block->data) throw PoolExhausted(false);
    block->capacity = size;
    block->space = space;
    block->index = blocks_.size();
    blocks_.push_back(std::move(block));
    Counts& counts = count(space);
    counts.reserved += size;
    counts.peak_reserved = std::max(counts.peak_reserved, counts.reserved);
    return blocks_.back().get();
}

// Frees cached blocks, the largest first, until `size` more bytes fit; 0: all. Waits for blocks that are
// still in use, as PyTorch does before it gives up.
void Allocator::give_back_cached(plan::MemorySpace space, std::int64_t size) {
    auto& cached = cached_[static_cast<std::size_t>(space)];
    while (!cached.empty() && (size == 0 || !has_room(size, space))) {
        const auto largest = std::prev(cached.end());
        MemoryBlock* block = largest->second;
        for (std::size_t s = 0; s < plan::kStreams; ++s) device_.wait({streams_[s], block->last_use[s]});
        device_.wait({options_.poison_stream, block->last_poison});
        settle();  // no lingerer of this block is left
        cached.erase(largest);
        release(block);
    }
}

void Allocator::release(MemoryBlock* block) {
    count(block->space).reserved -= block->capacity;
    device_.give_back(rank_, block->space, block->data);
    const std::size_t index = block->index;
    std::swap(blocks_[index], blocks_.back());
    blocks_[index]->index = index;
    blocks_.pop_back();
}

// --- after a free ----------------------------------------------------------------------------------------

// Keeps the block active until the streams from `first_stream` on have passed its last use, one after the
// other.
void Allocator::linger(MemoryBlock* block, int first_stream) {
    block->lingers_for = first_unfinished(*block, first_stream);
    if (block->lingers_for < 0) {
        count(block->space).active -= block->bytes;
        return;
    }
    const auto s = static_cast<std::size_t>(block->lingers_for);
    lingering_[s].push({block->last_use[s], block->turn, block});
}

void Allocator::settle() {
    for (int s = 0; s < plan::kStreams; ++s) {
        const auto i = static_cast<std::size_t>(s);
        Lingerers& lingerers = lingering_[i];
        while (!lingerers.empty() && device_.happened({streams_[i], lingerers.top().sequence})) {
            const Lingerer first = lingerers.top();
            lingerers.pop();
            if (first.turn == first.block->turn && first.block->lingers_for == s) linger(first.block, s + 1);
        }
    }
}

void Allocator::poison(MemoryBlock* block) {
    device::Waits waits;
    for (std::size_t s = 0; s < plan::kStreams; ++s) waits.add({streams_[s], block->last_use[s]});
    block->last_poison = device_.poison(options_.poison_stream, waits, block->data, block->capacity).sequence;
}

}  // namespace shardscope::trainer::executor
