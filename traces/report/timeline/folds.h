// Which events of a lane the HTML timeline folds: short events that follow each other closely become one item
// that says how many they are and how long they take. Pure. Times in nanoseconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "traces/analysis/base/intervals.h"
#include "traces/lanes/lane.h"

namespace shardscope::traces::report {

// The events [first, last) of a lane: one, or the events of a fold.
struct TimelineItem {
    std::size_t first = 0, last = 0;
    std::size_t events() const { return last - first; }
};

// Events, and gaps between them, of at least `shorter` stay as they are; so do events without a neighbour to
// be folded with. A fold lasts at most kWidestFold times `shorter`. 0 folds nothing.
inline constexpr std::int64_t kWidestFold = 16;

// Calls `take` with the items of the events that overlap `time`, in order.
template <class Take>
void fold_events(const lanes::Lane& lane, std::int64_t shorter, const analysis::Interval& time,
                 const Take& take) {
    const auto folds = [&](std::size_t i) { return lane.length(i) < shorter; };
    std::size_t i = lane.first_ending_after(time.start);
    // An instant at the start ends there, and counts.
    while (i > 0 && lane.end(i - 1) == time.start && lane.length(i - 1) == 0) --i;
    for (; i < lane.size() && lane.start(i) < time.end;) {
        std::size_t next = i + 1;
        while (folds(next - 1) && next < lane.size() && lane.start(next) < time.end && folds(next) &&
               lane.start(next) - lane.end(next - 1) < shorter &&
               lane.end(next) - lane.start(i) <= kWidestFold * shorter)
            ++next;
        take(TimelineItem{i, next});
        i = next;
    }
}

}  // namespace shardscope::traces::report
