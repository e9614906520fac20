#include "traces/store/columns/address_ranges.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace shardscope::traces::store {
namespace {

std::uint64_t end_of(std::uint64_t address, std::int64_t bytes) {
    const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - address;
    return address + std::min(room, static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
}

}  // namespace

void AddressRanges::add(std::uint64_t address, std::int64_t bytes) {
    std::uint64_t start = address, end = end_of(address, bytes);
    if (start == end) return;
    // Merges overlapping ranges only: adjacent ones stay separate, so that segments keep their borders.
    auto at = ranges_.lower_bound(start);
    if (at != ranges_.begin() && std::prev(at)->second > start) --at;
    while (at != ranges_.end() && at->first < end) {
        start = std::min(start, at->first);
        end = std::max(end, at->second);
        at = ranges_.erase(at);
    }
    ranges_.emplace(start, end);
}

void AddressRanges::remove(std::uint64_t address, std::int64_t bytes) {
    const std::uint64_t start = address, end = end_of(address, bytes);
    if (start == end) return;
    auto at = ranges_.lower_bound(start);
    if (at != ranges_.begin() && std::prev(at)->second > start) --at;
    while (at != ranges_.end() && at->first < end) {
        const auto [from, to] = *at;
        at = ranges_.erase(at);
        if (from < start) ranges_.emplace(from, start);
        if (to > end) at = ranges_.emplace(end, to).first;
    }
}

}  // namespace shardscope::traces::store
