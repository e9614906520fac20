// The settings of PyTorch's caching allocator (PYTORCH_CUDA_ALLOC_CONF) that decide how much memory it
// reserves. Rules and sources: docs/allocator.md. Sizes in bytes.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// Sizes that no setting changes (c10/cuda/CUDACachingAllocator.h).
struct AllocatorSizes {
    static constexpr std::int64_t kMinBlock = 512;                         // and what sizes are rounded to
    static constexpr std::int64_t kLargestSmall = std::int64_t{1} << 20;   // requests up to it are small
    static constexpr std::int64_t kSmallSegment = std::int64_t{2} << 20;   // serves small requests
    static constexpr std::int64_t kLargeSegment = std::int64_t{20} << 20;  // serves large ones below
    static constexpr std::int64_t kLeastOwnSegment = std::int64_t{10}
                                                     << 20;  // this: they have one of their own
    static constexpr std::int64_t kSegmentRounding = std::int64_t{2} << 20;  // of such a size
};

struct AllocatorSettings {
    static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
    // Sizes from 2^20 to 2^35 have a number of divisions each; smaller and larger ones use the nearest.
    static constexpr std::size_t kPowers = 16;

    bool expandable_segments = false;
    std::int64_t max_split = kUnlimited;                           // blocks of this size or more stay whole
    std::int64_t max_non_split_rounding = std::int64_t{20} << 20;  // what such a block may waste
    double garbage_collection = 0;                  // share of the limit; 0: cached blocks are not collected
    std::array<std::int64_t, kPowers> divisions{};  // of each power of two; 0 and 1: sizes are not rounded
    bool empty_cache = false;  // of a what-if only: torch.cuda.empty_cache() at the end of each step

    // What a request of so many bytes takes from a block.
    std::int64_t rounded(std::int64_t bytes) const;

    bool operator==(const AllocatorSettings&) const = default;
};

// Parses "expandable_segments:True,max_split_size_mb:128", the syntax of PYTORCH_CUDA_ALLOC_CONF, with the
// key empty_cache in addition. Throws std::invalid_argument, whose text is a sentence.
AllocatorSettings parse_allocator_settings(std::string_view text);

// The settings that a memory snapshot reports; the defaults if the trace has none.
AllocatorSettings recorded_allocator_settings(const store::Trace& trace);

// The same as one would write them; "defaults" if all have their default.
std::string to_text(const AllocatorSettings& settings);

}  // namespace shardscope::traces::analysis
