// See memory_curves.h.
#include "traces/analysis/memory/memory_curves.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "traces/analysis/base/counter_curve.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/peak_search.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {

ByteCurve allocated_curve(const Trace& trace, RankPlace rank, MemorySpace space) {
    const MemoryEvents& memory = trace.memory;
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

std::vector<MemoryPoint> selected_memory_curve(const Trace& trace, RankPlace rank, const Selection& selection,
                                               MemorySpace space) {
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

PoolCurves pool_curves(const Trace& trace, RankPlace rank) {
    PoolCurves curves;
    const std::array<std::pair<std::string_view, ByteCurve*>, 3> wanted = {
        {{kReservedCounter, &curves.reserved},
         {kActiveCounter, &curves.active},
         {kAllocatedCounter, &curves.allocated}}};
    const Counters& counters = trace.counters;
    for (const auto& [name, curve] : wanted) {
        const std::optional<StringId> id = trace.strings.find(name);
        for (std::size_t i = 0; id && i < counters.size(); ++i) {
            if (counters.rank[i] != rank.value || counters.name[i] != *id) continue;
            curve->time.push_back(counters.time[i]);
            curve->bytes.push_back(counter_bytes(counters.value[i]));
        }
    }
    return curves;
}

}  // namespace shardscope::traces
