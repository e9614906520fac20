// Linear merges over sorted, disjoint intervals; see intervals.h.
#include "traces/analysis/base/intervals.h"

#include <algorithm>

namespace shardscope::traces::analysis {

void append_merged(IntervalSet& set, Interval next) {
    if (next.end <= next.start) return;
    if (!set.empty() && next.start <= set.back().end) {
        set.back().end = std::max(set.back().end, next.end);
    } else {
        set.push_back(next);
    }
}

IntervalSet make_union(std::vector<Interval> intervals) {
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.start < b.start; });
    IntervalSet merged;
    for (const Interval& i : intervals) append_merged(merged, i);
    return merged;
}

IntervalSet intersect(std::span<const Interval> a, std::span<const Interval> b) {
    IntervalSet both;
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        const std::int64_t start = std::max(a[i].start, b[j].start);
        const std::int64_t end = std::min(a[i].end, b[j].end);
        if (start < end) both.push_back({start, end});
        if (a[i].end < b[j].end) {
            ++i;
        } else {
            ++j;
        }
    }
    return both;
}

IntervalSet subtract(std::span<const Interval> a, std::span<const Interval> b) {
    IntervalSet left;
    std::size_t j = 0;
    for (const Interval& whole : a) {
        std::int64_t start = whole.start;
        while (j < b.size() && b[j].end <= start) ++j;
        // b[j] may extend into the next interval of a, so it is skipped only if it ends inside this one.
        for (std::size_t k = j; k < b.size() && b[k].start < whole.end; ++k) {
            if (b[k].start > start) left.push_back({start, b[k].start});
            start = std::max(start, b[k].end);
            if (b[k].end <= whole.end) j = k + 1;
        }
        if (start < whole.end) left.push_back({start, whole.end});
    }
    return left;
}

std::int64_t length(std::span<const Interval> set) {
    std::int64_t sum = 0;
    for (const Interval& i : set) sum += i.length();
    return sum;
}

bool holds(std::span<const Interval> set, std::int64_t time) {
    const auto after = std::upper_bound(set.begin(), set.end(), time,
                                        [](std::int64_t t, const Interval& i) { return t < i.end; });
    return after != set.end() && after->start <= time;
}

std::int64_t length_within(std::span<const Interval> set, Interval window) {
    auto at = std::partition_point(set.begin(), set.end(),
                                   [&](const Interval& i) { return i.end <= window.start; });
    std::int64_t sum = 0;
    for (; at != set.end() && at->start < window.end; ++at)
        sum += std::max<std::int64_t>(0, std::min(at->end, window.end) - std::max(at->start, window.start));
    return sum;
}

std::vector<std::int64_t> length_inside(std::span<const Interval> set, std::span<const Interval> windows) {
    std::vector<std::int64_t> inside(windows.size(), 0);
    std::size_t i = 0, w = 0;
    while (i < set.size() && w < windows.size()) {
        const std::int64_t start = std::max(set[i].start, windows[w].start);
        const std::int64_t end = std::min(set[i].end, windows[w].end);
        if (start < end) inside[w] += end - start;
        if (set[i].end < windows[w].end) {
            ++i;
        } else {
            ++w;
        }
    }
    return inside;
}

}  // namespace shardscope::traces::analysis
