// How the ranges of a thread nest: parents, depths and the range around an instant. Works on columns that are
// sorted by (start, longer first); threads may be interleaved. Times in nanoseconds, intervals half-open.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardscope::traces::store {

struct Nesting {
    std::vector<std::int32_t>
        parent;  // the innermost range of the thread that fully encloses this one, -1 none
    std::vector<std::uint16_t> depth;     // ranges open at the same time on a thread differ in depth
    std::vector<std::int32_t> innermost;  // for each instant: the innermost range open at it, -1 none
};

// `instants` (sorted) are points in time on threads, for example the starts of runtime calls.
// Ranges that overlap without nesting (start/end ranges) are not each other's parents but differ in depth.
Nesting nest(std::span<const std::int64_t> start, std::span<const std::int64_t> end,
             std::span<const std::uint16_t> thread, std::span<const std::int64_t> instants,
             std::span<const std::uint16_t> instant_thread);

}  // namespace shardscope::traces::store
