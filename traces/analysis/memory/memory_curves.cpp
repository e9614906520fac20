// See memory_curves.h.
#include "traces/analysis/memory/memory_curves.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/peak_search.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

ByteCurve allocated_curve(const store::Trace& trace, store::RankIndex rank, schema::MemorySpace space) {
    const store::MemoryEvents& memory = trace.memory;
    const std::vector<bool> counts = rows_of_fullest_devices(trace);
    ByteCurve curve;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.rank[i] != rank.value || memory.space[i] != space || (!counts.empty() && !counts[i]))
            continue;
        total += memory.bytes[i];
        curve.time.push_back(memory.time[i]);
        curve.bytes.push_back(total);
    }
    return curve;
}

std::vector<ByteCurve> allocated_curves(const store::Trace& trace, schema::MemorySpace space) {
    const store::MemoryEvents& memory = trace.memory;
    const std::vector<bool> counts = rows_of_fullest_devices(trace);
    std::vector<ByteCurve> curves(trace.ranks.size());
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.space[i] != space || (!counts.empty() && !counts[i])) continue;
        ByteCurve& curve = curves[memory.rank[i]];
        const std::int64_t before = curve.empty() ? 0 : curve.bytes.back();
        curve.time.push_back(memory.time[i]);
        curve.bytes.push_back(before + memory.bytes[i]);
    }
    return curves;
}

std::vector<MemoryPoint> selected_memory_curve(const store::Trace& trace, store::RankIndex rank,
                                               const Selection& selection, schema::MemorySpace space) {
    std::vector<MemoryPoint> curve = memory_curve(trace, rank, space);
    if (selects_whole_time(selection) || curve.empty()) return curve;
    const TraceSteps steps = find_steps(trace);
    const IntervalSet time = selected_host_time(steps.ranks[rank.at()], selection);
    if (time.empty()) return {};
    const std::int64_t from = std::max(time.front().start, trace.first_ns);
    const std::int64_t to = std::min(time.back().end, trace.last_ns);
    if (from >= to) return {};
    const auto at = [&](std::int64_t t) {
        return std::partition_point(curve.begin(), curve.end(),
                                    [t](const MemoryPoint& point) { return point.time < t; });
    };
    const auto first = at(from), last = at(to);
    std::vector<MemoryPoint> part;
    part.reserve(static_cast<std::size_t>(last - first) + 2);
    if (first != curve.begin()) part.push_back(*(first - 1));
    if (part.empty()) part.emplace_back();
    part.front().time = from;
    part.insert(part.end(), first, last);
    part.push_back(part.back());
    part.back().time = to;
    return part;
}

PoolCurves pool_curves(const store::Trace& trace, store::RankIndex rank) {
    PoolCurves curves;
    const std::array<std::pair<std::string_view, ByteCurve*>, 3> wanted = {
        {{kReservedCounter, &curves.reserved},
         {kActiveCounter, &curves.active},
         {kAllocatedCounter, &curves.allocated}}};
    const store::Counters& counters = trace.counters;
    for (const auto& [name, curve] : wanted) {
        const std::optional<schema::StringId> id = trace.strings.find(name);
        for (std::size_t i = 0; id && i < counters.size(); ++i) {
            if (counters.rank[i] != rank.value || counters.name[i] != *id) continue;
            curve->time.push_back(counters.time[i]);
            curve->bytes.push_back(counter_bytes(counters.value[i]));
        }
    }
    return curves;
}

std::int64_t counter_bytes(double value) {
    constexpr double kLargest = 72'057'594'037'927'936;  // 2^56
    return value > 0 ? static_cast<std::int64_t>(std::min(value, kLargest)) : 0;
}

CounterCurve::CounterCurve(const store::Trace& trace, store::RankIndex rank, std::string_view name) {
    const std::optional<schema::StringId> id = trace.strings.find(name);
    if (!id) return;
    const store::Counters& counters = trace.counters;
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

PeakIndex::PeakIndex(const store::Trace& trace, store::RankIndex rank, schema::MemorySpace space) {
    ByteCurve curve = allocated_curve(trace, rank, space);
    times_ = std::move(curve.time);
    const std::vector<std::int64_t>& totals = curve.bytes;
    tree_.resize(2 * totals.size());
    std::copy(totals.begin(), totals.end(), tree_.begin() + static_cast<std::ptrdiff_t>(totals.size()));
    for (std::size_t i = totals.size(); i-- > 1;) tree_[i] = std::max(tree_[2 * i], tree_[2 * i + 1]);
}

std::int64_t PeakIndex::most(std::int64_t start, std::int64_t end) const {
    const auto after_start = std::upper_bound(times_.begin(), times_.end(), start);
    const auto at_end = std::lower_bound(after_start, times_.end(), end);
    auto low = static_cast<std::size_t>(after_start - times_.begin());
    auto high = static_cast<std::size_t>(at_end - times_.begin());
    const std::size_t n = times_.size();
    std::int64_t most = low > 0 ? tree_[n + low - 1] : 0;  // the total at `start`
    for (low += n, high += n; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1) most = std::max(most, tree_[low++]);
        if (high % 2 == 1) most = std::max(most, tree_[--high]);
    }
    return most;
}

}  // namespace shardscope::traces::analysis
