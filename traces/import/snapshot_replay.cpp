#include "traces/import/snapshot_replay.h"

#include <algorithm>
#include <limits>

namespace shardscope::traces {

void BlockReplay::lives_at_end(const LiveBlock& block) {
    live_[block.address] = block;
    bytes_ += block.bytes;
}

void BlockReplay::allocated(std::uint64_t address, std::int64_t bytes) {
    live_.erase(address);
    bytes_ -= bytes;
}

void BlockReplay::freed(const LiveBlock& block) {
    live_[block.address] = block;
    bytes_ += block.bytes;
}

std::vector<LiveBlock> BlockReplay::before() const {
    std::vector<LiveBlock> blocks;
    blocks.reserve(live_.size());
    for (const auto& [address, block] : live_) blocks.push_back(block);
    std::sort(blocks.begin(), blocks.end(),
              [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
    return blocks;
}

namespace {

std::uint64_t end_of(std::uint64_t address, std::int64_t bytes) {
    const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - address;
    return address + std::min(room, static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
}

}  // namespace

void RangeReplay::add(std::uint64_t address, std::int64_t bytes) {
    std::uint64_t start = address, end = end_of(address, bytes);
    if (start == end) return;
    // Merge with what overlaps; neighbours stay apart, so that segments keep their borders.
    auto at = ranges_.lower_bound(start);
    if (at != ranges_.begin() && std::prev(at)->second > start) --at;
    while (at != ranges_.end() && at->first < end) {
        start = std::min(start, at->first);
        end = std::max(end, at->second);
        at = ranges_.erase(at);
    }
    ranges_.emplace(start, end);
}

void RangeReplay::remove(std::uint64_t address, std::int64_t bytes) {
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

std::vector<LiveBlock> RangeReplay::before() const {
    std::vector<LiveBlock> result;
    result.reserve(ranges_.size());
    for (const auto& [start, end] : ranges_)
        result.push_back({start, static_cast<std::int64_t>(end - start), 0});
    return result;
}

}  // namespace shardscope::traces
