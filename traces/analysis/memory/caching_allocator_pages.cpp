// Expandable segments: one range of addresses for each pool and stream, larger than any device, whose pages
// (2 MiB of small blocks, 20 MiB of large ones) are mapped when they are needed.
#include <algorithm>

#include "traces/analysis/memory/caching_allocator.h"

namespace shardscope::traces::analysis {
namespace {

// More than any device: a whole number of pages of both sizes. Segments lie 20 TiB apart.
constexpr std::int64_t kAddressSpace = std::int64_t{20} << 56, kDistance = std::int64_t{20} << 40;

}  // namespace

// The lowest free and unmapped blocks of the stream that adjoin and have room for the request: the first of
// them. Makes a new segment if there are none.
CachingAllocator::Index CachingAllocator::find_pages(std::uint32_t pool, std::int64_t bytes, int stream) {
    const auto is_free = [&](Index block) { return block != kNone && at(block).state != State::used; };
    const std::set<ByAddress>& unmapped = pools_[pool].unmapped;
    for (auto next = unmapped.lower_bound({stream, 0, 0});
         next != unmapped.end() && std::get<0>(*next) == stream; ++next) {
        Index first = std::get<2>(*next);
        if (is_free(at(first).before)) first = at(first).before;
        std::int64_t room = 0;
        for (Index block = first; room < bytes && is_free(block); block = at(block).after)
            room += at(block).bytes;
        if (room >= bytes) return first;
    }
    // The recording shows the first mapping of a segment.
    const std::int64_t page = pools_[pool].page();
    const std::uint64_t address = new_address((bytes + page - 1) / page * page, stream);
    next_address_ += static_cast<std::uint64_t>(kDistance);
    const Index block = new_block({.address = address,
                                   .bytes = kAddressSpace,
                                   .base = address,
                                   .stream = stream,
                                   .pool = pool,
                                   .state = State::unmapped,
                                   .expandable = true});
    put_back(block);
    return block;
}

CachingAllocator::Index CachingAllocator::grow_pages(std::uint32_t pool, std::int64_t bytes, int stream) {
    Index block = find_pages(pool, bytes, stream);
    if (!is_mapped(block) && !map(block, std::min(bytes, at(block).bytes))) return kNone;
    while (at(block).bytes < bytes) {
        const Index next = at(block).after;
        if (!map(next, std::min(bytes - at(block).bytes, at(next).bytes))) return kNone;
        block = next;  // which has merged with the block before it
    }
    take_out(block);
    return block;
}

// Maps pages from the start of an unmapped block; all that are needed, or none.
bool CachingAllocator::map(Index block, std::int64_t bytes) {
    const std::int64_t page = pool_of(block).page();
    const std::int64_t size = std::min((bytes + page - 1) / page * page, at(block).bytes);
    if (!has_room(size)) return false;
    take_out(block);
    if (size < at(block).bytes) cut(block, size);
    at(block).state = State::cached;
    segments_ += 1 - (is_mapped(at(block).before) ? 1 : 0) - (is_mapped(at(block).after) ? 1 : 0);
    note(at(block).address, size, at(block).stream);
    merge_neighbours(block);
    return true;
}

// Unmaps the pages that lie within a cached block.
void CachingAllocator::unmap(Index block) {
    const auto page = static_cast<std::uint64_t>(pool_of(block).page());
    const std::uint64_t base = at(block).base, start = at(block).address - base,
                        end = start + static_cast<std::uint64_t>(at(block).bytes);
    const std::uint64_t first = (start + page - 1) / page * page, last = end / page * page;
    if (first >= last) return;
    take_out(block);
    Index pages = block;
    if (first > start) {
        cut(block, static_cast<std::int64_t>(first - start));
        put_back(block);
        pages = at(block).after;
        take_out(pages);
    }
    if (last < end) cut(pages, static_cast<std::int64_t>(last - first));
    at(pages).state = State::unmapped;
    segments_ += (is_mapped(at(pages).before) ? 1 : 0) + (is_mapped(at(pages).after) ? 1 : 0) - 1;
    note(at(pages).address, -at(pages).bytes, at(pages).stream);
    merge_neighbours(pages);
}

}  // namespace shardscope::traces::analysis
