// Arithmetic of half-open time intervals [start, end). The intervals of a set are sorted and disjoint,
// and do not touch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardscope::traces::analysis {

struct Interval {
    std::int64_t start = 0, end = 0;
    std::int64_t length() const { return end - start; }
    bool operator==(const Interval&) const = default;
};

using IntervalSet = std::vector<Interval>;

IntervalSet make_union(std::vector<Interval> intervals);  // sorts, merges overlapping and touching
IntervalSet intersect(std::span<const Interval> a, std::span<const Interval> b);
IntervalSet subtract(std::span<const Interval> a, std::span<const Interval> b);
std::int64_t length(std::span<const Interval> set);
bool holds(std::span<const Interval> set, std::int64_t time);  // O(log n)

// Adds an interval that starts at or after the last one's start, merging as make_union would; ignores an
// empty one.
void append_merged(IntervalSet& set, Interval next);
// How much of the set lies in the window: O(log n + intervals in the window).
std::int64_t length_within(std::span<const Interval> set, Interval window);
// For each of the windows (sorted by start, disjoint; empty ones allowed): how much of the set lies in it.
std::vector<std::int64_t> length_inside(std::span<const Interval> set, std::span<const Interval> windows);

}  // namespace shardscope::traces::analysis
