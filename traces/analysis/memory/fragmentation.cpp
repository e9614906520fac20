// See fragmentation.h. Rounding: c10/cuda/CUDACachingAllocator.h, kMinBlockSize.
#include <algorithm>
#include <utility>

#include "traces/analysis/memory/memory.h"
#include "traces/store/columns/address_ranges.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::uint64_t kBlockRounding = 512;

using Range = std::pair<std::uint64_t, std::uint64_t>;  // [start, end)

std::vector<Range> held_ranges(const store::Trace& trace, store::RankIndex rank, std::int64_t time) {
    const store::Segments& segments = trace.segments;
    store::AddressRanges held;
    for (std::size_t i = 0; i < segments.size() && segments.time[i] <= time; ++i) {
        if (segments.rank[i] != rank.value) continue;
        if (segments.bytes[i] > 0) held.add(segments.address[i], segments.bytes[i]);
        // A segment freed at exactly that time was still there when the peak was reached.
        if (segments.bytes[i] < 0 && segments.time[i] < time)
            held.remove(segments.address[i], -segments.bytes[i]);
    }
    const bool growing = trace.config_value("allocator.expandable_segments") == "true";
    std::vector<Range> ranges;
    for (const Range range : held.ranges()) {
        if (growing && !ranges.empty() && ranges.back().second == range.first) {
            ranges.back().second = range.second;
        } else {
            ranges.push_back(range);
        }
    }
    return ranges;
}

std::vector<Range> live_blocks(const store::MemoryEvents& memory, const std::vector<std::uint32_t>& live) {
    std::vector<Range> blocks;
    blocks.reserve(live.size());
    for (const std::uint32_t row : live) {
        const std::uint64_t start = memory.address[row];
        const auto bytes = static_cast<std::uint64_t>(memory.bytes[row]);
        const std::uint64_t rounded = (bytes + kBlockRounding - 1) / kBlockRounding * kBlockRounding;
        blocks.emplace_back(start, start + std::min(rounded, ~std::uint64_t{0} - start));
    }
    std::sort(blocks.begin(), blocks.end());
    return blocks;
}

}  // namespace

Fragmentation fragmentation_at(const store::Trace& trace, store::RankIndex rank, std::int64_t time,
                               const std::vector<std::uint32_t>& live) {
    Fragmentation result;
    const std::vector<Range> held = held_ranges(trace, rank, time);
    if (held.empty()) return result;
    const std::vector<Range> blocks = live_blocks(trace.memory, live);
    const auto gap = [&](std::uint64_t from, std::uint64_t to) {
        if (from >= to) return;
        const auto bytes = static_cast<std::int64_t>(to - from);
        result.free_bytes += bytes;
        ++result.free_blocks;
        result.largest_free = std::max(result.largest_free, bytes);
    };
    auto block = blocks.begin();
    for (const auto& [start, end] : held) {
        ++result.segments;
        result.held_bytes += static_cast<std::int64_t>(end - start);
        std::uint64_t at = start;
        while (block != blocks.end() && block->second <= start) ++block;
        for (; block != blocks.end() && block->first < end; ++block) {
            gap(at, block->first);
            at = std::max(at, std::min(block->second, end));
            if (block->second > end) break;  // it extends into the next range too
        }
        gap(at, end);
    }
    return result;
}

}  // namespace shardscope::traces::analysis
