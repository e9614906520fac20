// See counter_fold.h.
#include "viewer/timeline/counter_fold.h"

#include <algorithm>
#include <optional>

namespace shardscope::viewer {

std::vector<CounterRun> fold_counter(const std::vector<std::pair<std::int64_t, double>>& points,
                                     const TimeView& view, int columns) {
    std::vector<CounterRun> runs;
    if (points.empty() || columns <= 0) return runs;
    auto next = std::partition_point(points.begin(), points.end(),
                                     [&](const auto& point) { return point.first < view.from; });
    std::optional<double> held;
    if (next != points.begin()) held = std::prev(next)->second;
    for (int c = 0; c < columns; ++c) {
        const std::int64_t from = view.column_start(c, columns), to = view.column_start(c + 1, columns);
        if (from >= to) continue;  // narrower than a nanosecond
        // What is carried in counts unless it is replaced at the column's first instant.
        std::optional<double> low, high;
        if (held && (next == points.end() || next->first > from)) low = high = held;
        for (; next != points.end() && next->first < to; ++next) {
            held = next->second;
            low = std::min(low.value_or(*held), *held);
            high = std::max(high.value_or(*held), *held);
        }
        if (!low) continue;
        if (!runs.empty() && runs.back().first + runs.back().count == c && runs.back().lowest == *low &&
            runs.back().highest == *high) {
            ++runs.back().count;
        } else {
            runs.push_back({c, 1, *low, *high});
        }
    }
    return runs;
}

}  // namespace shardscope::viewer
