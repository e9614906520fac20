#include "traces/analysis/memory/caching_allocator.h"

#include <algorithm>
#include <limits>

namespace shardscope::traces::analysis {
namespace {

using Sizes = AllocatorSizes;

// What is taken from the device for a request of so many (rounded) bytes.
std::int64_t segment_bytes(std::int64_t bytes) {
    if (bytes <= Sizes::kLargestSmall) return Sizes::kSmallSegment;
    if (bytes < Sizes::kLeastOwnSegment) return Sizes::kLargeSegment;
    return (bytes + Sizes::kSegmentRounding - 1) / Sizes::kSegmentRounding * Sizes::kSegmentRounding;
}

}  // namespace

std::int64_t CachingAllocator::Pool::page() const {
    return small ? Sizes::kSmallSegment : Sizes::kLargeSegment;
}

// --- blocks ------------------------------------------------------------------------------------------------

std::uint32_t CachingAllocator::find_pool(int owner, bool small) {
    const auto [found, added] =
        pool_index_.try_emplace({owner, small}, static_cast<std::uint32_t>(pools_.size()));
    if (added) pools_.push_back({.owner = owner, .small = small, .cached = {}, .unmapped = {}});
    return found->second;
}

CachingAllocator::Index CachingAllocator::new_block(const Block& block) {
    if (unused_.empty()) {
        blocks_.push_back(block);
        return static_cast<Index>(blocks_.size() - 1);
    }
    const Index index = unused_.back();
    unused_.pop_back();
    at(index) = block;
    return index;
}

void CachingAllocator::put_back(Index block) {
    Block& b = at(block);
    Pool& pool = pool_of(block);
    if (b.state == State::cached) {
        b.cached_since = pool.searches;
        pool.cached.emplace(b.stream, b.bytes, b.address, block);
    } else if (b.state == State::unmapped) {
        pool.unmapped.emplace(b.stream, b.address, block);
    }
}

void CachingAllocator::take_out(Index block) {
    const Block& b = at(block);
    if (b.state == State::cached) pool_of(block).cached.erase({b.stream, b.bytes, b.address, block});
    if (b.state == State::unmapped) pool_of(block).unmapped.erase({b.stream, b.address, block});
}

void CachingAllocator::link_after(Index block, Index added) {
    at(added).before = block;
    at(added).after = at(block).after;
    if (at(added).after != kNone) at(at(added).after).before = added;
    at(block).after = added;
}

void CachingAllocator::cut(Index block, std::int64_t bytes) {
    Block rest = at(block);
    rest.address += static_cast<std::uint64_t>(bytes);
    rest.bytes -= bytes;
    at(block).bytes = bytes;
    const Index added = new_block(rest);
    link_after(block, added);
    put_back(added);
}

// Joins `neighbour`, which is in a list, with `block`, which is in none, if both are free in the same way.
void CachingAllocator::merge(Index block, Index neighbour) {
    if (neighbour == kNone || at(neighbour).state != at(block).state) return;
    take_out(neighbour);
    Block& b = at(block);
    const Block& n = at(neighbour);
    b.bytes += n.bytes;
    if (b.before == neighbour) {
        b.address = n.address;
        b.before = n.before;
        if (b.before != kNone) at(b.before).after = block;
    } else {
        b.after = n.after;
        if (b.after != kNone) at(b.after).before = block;
    }
    unused_.push_back(neighbour);
}

void CachingAllocator::merge_neighbours(Index block) {
    merge(block, at(block).before);
    merge(block, at(block).after);
    put_back(block);
}

bool CachingAllocator::is_whole(Index block) const {
    return at(block).before == kNone && at(block).after == kNone;
}

void CachingAllocator::note(std::uint64_t address, std::int64_t bytes, int stream) {
    reserved_ += bytes;
    changes_.push_back({address, bytes, stream});
}

bool CachingAllocator::has_room(std::int64_t bytes) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;  // so that no sum overflows
    return reserved_ <= (limit_ > 0 ? std::min(limit_, kMost) : kMost) - bytes;
}

// --- segments ----------------------------------------------------------------------------------------------

void CachingAllocator::add_segment(const AllocatorPlace& place, std::span<const AllocatorPiece> pieces,
                                   bool expandable) {
    const std::uint32_t pool = find_pool(place.pool, place.small);
    Index last = kNone;
    for (const AllocatorPiece& piece : pieces) {
        const Index block = new_block({.address = piece.address,
                                       .bytes = piece.bytes,
                                       .base = pieces.front().address,
                                       .stream = place.stream,
                                       .pool = pool,
                                       .state = piece.state,
                                       .expandable = expandable});
        if (last != kNone) link_after(last, block);
        put_back(block);
        if (piece.state == State::used) {
            live_[piece.id] = block;
            allocated_ += piece.bytes;
        }
        if (piece.state != State::unmapped) {
            reserved_ += piece.bytes;
            if (!is_mapped(last)) ++segments_;
        }
        last = block;
    }
}

void CachingAllocator::offer_address(std::int64_t bytes, int stream, std::uint64_t address) {
    offered_[{bytes, stream}].push_back(address);
}

std::uint64_t CachingAllocator::new_address(std::int64_t bytes, int stream) {
    if (const auto offered = offered_.find({bytes, stream});
        offered != offered_.end() && !offered->second.empty()) {
        const std::uint64_t address = offered->second.front();
        offered->second.pop_front();
        return address;
    }
    const std::uint64_t address = next_address_;
    next_address_ += static_cast<std::uint64_t>(std::max(bytes, Sizes::kSegmentRounding));
    return address;
}

CachingAllocator::Index CachingAllocator::grow(std::uint32_t pool, std::int64_t bytes, int stream) {
    if (settings_.expandable_segments) return grow_pages(pool, bytes, stream);
    const std::int64_t size = segment_bytes(bytes);
    if (!has_room(size)) return kNone;
    const std::uint64_t address = new_address(size, stream);
    ++segments_;
    note(address, size, stream);
    return new_block({.address = address, .bytes = size, .base = address, .stream = stream, .pool = pool});
}

void CachingAllocator::release(Index block) {
    const Block& b = at(block);
    take_out(block);
    note(b.address, -b.bytes, b.stream);
    --segments_;
    unused_.push_back(block);
}

// --- requests ----------------------------------------------------------------------------------------------

// How large a cached block can become by mapping what follows it.
std::int64_t CachingAllocator::growable(Index block) const {
    const Block& b = at(block);
    const bool grows = b.after != kNone && at(b.after).state == State::unmapped;
    return b.bytes + (grows ? at(b.after).bytes : 0);
}

// The smallest cached block of the stream that fits, taken out of its list.
CachingAllocator::Index CachingAllocator::find_cached(Pool& pool, std::int64_t bytes, int stream) const {
    ++pool.searches;
    const auto ours = [&](auto it) { return it != pool.cached.end() && std::get<0>(*it) == stream; };
    auto found = pool.cached.lower_bound({stream, bytes, 0, 0});
    if (!ours(found)) return kNone;
    if (settings_.expandable_segments && at(std::get<3>(*found)).expandable) {
        // A block that can grow counts with the size to which it can grow, so that it is kept for requests
        // that need it.
        for (auto next = std::next(found);
             ours(next) && growable(std::get<3>(*next)) < growable(std::get<3>(*found)); ++next)
            found = next;
    } else if (!settings_.expandable_segments) {
        while (ours(found) && at(std::get<3>(*found)).expandable) ++found;
        if (!ours(found)) return kNone;
    }
    const std::int64_t size = std::get<1>(*found);
    const std::int64_t limit = settings_.max_split;
    if (bytes < limit && size >= limit) return kNone;
    if (bytes >= limit && size >= bytes + settings_.max_non_split_rounding) return kNone;
    const Index block = std::get<3>(*found);
    pool.cached.erase(found);
    return block;
}

bool CachingAllocator::should_split(const Block& block, std::int64_t bytes) const {
    const std::int64_t rest = block.bytes - bytes;
    if (pools_[block.pool].small || settings_.expandable_segments) return rest >= Sizes::kMinBlock;
    return bytes < settings_.max_split && rest > Sizes::kLargestSmall;
}

bool CachingAllocator::allocate(std::uint64_t id, std::int64_t bytes, int stream, int pool) {
    free(id);
    if (bytes > kMostRequested) return false;
    const std::int64_t size = settings_.rounded(bytes);
    const std::uint32_t from = find_pool(pool, size <= Sizes::kLargestSmall);
    Index block = find_cached(pools_[from], size, stream);
    if (block == kNone) {
        if (settings_.garbage_collection > 0 && limit_ > 0) collect_garbage();
        block = grow(from, size, stream);
        if (block == kNone && release_oversize(pools_[from], size, stream)) block = grow(from, size, stream);
        if (block == kNone) {
            ++retries_;
            empty_cache();
            block = grow(from, size, stream);
        }
        if (block == kNone) return false;
    }
    if (should_split(at(block), size)) cut(block, size);
    at(block).state = State::used;
    allocated_ += at(block).bytes;
    live_[id] = block;
    return true;
}

void CachingAllocator::request_free(std::uint64_t id) {
    if (live_.contains(id)) pending_.insert(id);
}

void CachingAllocator::free(std::uint64_t id) {
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    const Index block = found->second;
    live_.erase(found);
    pending_.erase(id);
    allocated_ -= at(block).bytes;
    at(block).state = State::cached;
    merge_neighbours(block);
}

// --- releases ----------------------------------------------------------------------------------------------

// Releases oversize blocks, which are never split, if they make room for the request: one that is large
// enough, else the largest ones.
bool CachingAllocator::release_oversize(Pool& pool, std::int64_t bytes, int stream) {
    const std::int64_t limit = settings_.max_split;
    if (limit == AllocatorSettings::kUnlimited) return false;
    const std::int64_t needed = std::max(bytes, limit);
    const auto can_go = [&](Index block) { return !at(block).expandable && is_whole(block); };
    const auto fits = pool.cached.lower_bound({stream, needed, 0, 0});
    if (fits != pool.cached.end() && std::get<0>(*fits) == stream) {
        const Index block = std::get<3>(*fits);
        if (can_go(block)) release(block);
        return true;
    }
    std::int64_t released = 0;
    for (auto next = fits; next != pool.cached.begin() && released < needed;) {
        --next;
        const auto [of_stream, size, address, block] = *next;
        if (of_stream != stream || size < limit) break;
        if (!can_go(block)) continue;
        released += size;
        const auto after = std::next(next);
        release(block);
        next = after;
    }
    return released >= needed;
}

void CachingAllocator::empty_cache() {
    for (const std::uint64_t id : std::exchange(pending_, {})) free(id);
    for (Pool& pool : pools_) {
        if (pool.owner != 0) continue;  // a private pool keeps its segments while its graph exists
        std::vector<Index> blocks;
        blocks.reserve(pool.cached.size());
        for (const BySize& cached : pool.cached) blocks.push_back(std::get<3>(cached));
        for (const Index block : blocks) {
            if (at(block).expandable) {
                unmap(block);
            } else if (is_whole(block)) {
                release(block);
            }
        }
    }
}

// Releases whole cached segments of large blocks, those unused for longest first, until less than the
// threshold is reserved.
void CachingAllocator::collect_garbage() {
    const double threshold = settings_.garbage_collection * static_cast<double>(limit_);
    if (static_cast<double>(reserved_) <= threshold) return;
    const double target = static_cast<double>(reserved_) - threshold;
    Pool& pool = pools_[find_pool(0, false)];
    const auto age = [&](Index block) { return static_cast<double>(pool.searches - at(block).cached_since); };
    std::vector<Index> blocks;
    double ages = 0, reclaimed = 0;
    for (const BySize& cached : pool.cached) {
        const Index block = std::get<3>(cached);
        if (at(block).expandable || !is_whole(block)) continue;
        blocks.push_back(block);
        ages += age(block);
    }
    for (bool released = true; released && !blocks.empty() && reclaimed < target;) {
        released = false;
        const double mean = ages / static_cast<double>(blocks.size());
        std::erase_if(blocks, [&](Index block) {
            if (age(block) < mean) return false;
            released = true;
            reclaimed += static_cast<double>(at(block).bytes);
            ages -= age(block);
            release(block);
            return true;
        });
    }
}

// --- what there is -----------------------------------------------------------------------------------------

std::uint64_t CachingAllocator::address_of(std::uint64_t id) const {
    const auto found = live_.find(id);
    return found == live_.end() ? 0 : at(found->second).address;
}

AllocatorState CachingAllocator::state() const {
    AllocatorState state{.reserved = reserved_, .allocated = allocated_, .segments = segments_};
    for (const Pool& pool : pools_) {
        state.free_blocks += static_cast<std::int64_t>(pool.cached.size());
        // The last of each stream is the largest.
        for (auto next = pool.cached.begin(); next != pool.cached.end();) {
            next = pool.cached.upper_bound({std::get<0>(*next), std::numeric_limits<std::int64_t>::max(),
                                            std::numeric_limits<std::uint64_t>::max(), 0});
            state.largest_free = std::max(state.largest_free, std::get<1>(*std::prev(next)));
        }
    }
    return state;
}

std::vector<ReservedSegment> CachingAllocator::segments() const {
    std::vector<bool> unused(blocks_.size());
    for (const Index block : unused_) unused[static_cast<std::size_t>(block)] = true;
    std::vector<ReservedSegment> segments;
    for (Index first = 0; first < static_cast<Index>(blocks_.size()); ++first) {
        if (unused[static_cast<std::size_t>(first)] || !is_mapped(first) || is_mapped(at(first).before))
            continue;
        const Block& b = at(first);
        const Pool& pool = pools_[b.pool];
        ReservedSegment segment{b.address, 0, {b.stream, pool.owner, pool.small}};
        for (Index block = first; is_mapped(block); block = at(block).after) segment.bytes += at(block).bytes;
        segments.push_back(segment);
    }
    std::sort(segments.begin(), segments.end(),
              [](const ReservedSegment& a, const ReservedSegment& b) { return a.address < b.address; });
    return segments;
}

}  // namespace shardscope::traces::analysis
