#include "traces/analysis/base/counter_curve.h"

#include <algorithm>

#include "traces/store/columns/trace.h"

namespace shardscope::traces {

std::int64_t counter_bytes(double value) {
    constexpr double kLargest = 72'057'594'037'927'936;  // 2^56
    return value > 0 ? static_cast<std::int64_t>(std::min(value, kLargest)) : 0;
}

CounterCurve::CounterCurve(const Trace& trace, RankPlace rank, std::string_view name) {
    const std::optional<StringId> id = trace.strings.find(name);
    if (!id) return;
    const Counters& counters = trace.counters;
    for (std::size_t i = 0; i < counters.size(); ++i) {
        if (counters.name[i] != *id || counters.rank[i] != rank.value) continue;
        times_.push_back(counters.time[i]);
        values_.push_back(counters.value[i]);
    }
}

double CounterCurve::at(std::int64_t time) const {
    const auto after = std::upper_bound(times_.begin(), times_.end(), time);
    return after == times_.begin() ? 0 : values_[static_cast<std::size_t>(after - times_.begin()) - 1];
}

CounterCurve::Extreme CounterCurve::most(const Interval& interval) const {
    Extreme most{at(interval.start), interval.start};
    auto next = std::upper_bound(times_.begin(), times_.end(), interval.start);
    for (; next != times_.end() && *next < interval.end; ++next) {
        const double value = values_[static_cast<std::size_t>(next - times_.begin())];
        if (value > most.value) most = {value, *next};
    }
    return most;
}

IntervalSet CounterCurve::when(double value, const Interval& interval) const {
    IntervalSet set;
    for (std::size_t i = 0; i < times_.size(); ++i) {
        if (values_[i] != value) continue;
        const std::int64_t end = i + 1 < times_.size() ? times_[i + 1] : interval.end;
        append_merged(set, {std::max(times_[i], interval.start), std::min(end, interval.end)});
    }
    return set;
}

}  // namespace shardscope::traces
