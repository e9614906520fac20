// A counter over the columns of a view, without losing its extremes. Pure arithmetic, any thread.
// Times in nanoseconds.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "viewer/timeline/time_view.h"

namespace shardscope::viewer {

// Neighbouring columns with the same lowest and highest value in force.
struct CounterRun {
    int first = 0, count = 0;
    double lowest = 0, highest = 0;
    bool operator==(const CounterRun&) const = default;
};

// `points` (sorted by time) hold from their time on; before the first there is no value and no column.
std::vector<CounterRun> fold_counter(const std::vector<std::pair<std::int64_t, double>>& points,
                                     const TimeView& view, int columns);

}  // namespace shardscope::viewer
