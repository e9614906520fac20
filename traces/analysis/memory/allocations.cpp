// See allocations.h.
#include "traces/analysis/memory/allocations.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/peak_search.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
namespace {

// For each row of Trace::memory: when the next row of the same address came.
std::vector<std::int64_t> ends_of(const MemoryEvents& memory) {
    const auto place = [&](std::uint32_t i) {
        return std::tuple(memory.rank[i], memory.space[i], memory.address[i]);
    };
    std::vector<std::uint32_t> order(memory.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        const auto at_a = place(a), at_b = place(b);
        return at_a != at_b ? at_a < at_b : a < b;
    });
    std::vector<std::int64_t> ends(memory.size(), kNeverFreed);
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
        if (place(order[i]) == place(order[i + 1])) ends[order[i]] = memory.time[order[i + 1]];
    }
    return ends;
}

}  // namespace

Allocations find_allocations(const Trace& trace, const Selection& selection) {
    const MemoryEvents& memory = trace.memory;
    const std::vector<std::int64_t> ends = ends_of(memory);
    const bool all = selects_whole_time(selection);
    std::vector<IntervalSet> times(trace.ranks.size());
    if (!all) {
        const TraceSteps steps = find_steps(trace);
        for (std::size_t r = 0; r < times.size(); ++r)
            times[r] = selected_host_time(steps.ranks[r], selection);
    }
    const auto lived_in = [&](const IntervalSet& time, std::int64_t start, std::int64_t end) {
        const auto at =
            std::partition_point(time.begin(), time.end(), [&](const Interval& i) { return i.end <= start; });
        return at != time.end() && at->start < end;
    };
    Allocations found;
    for (std::uint32_t i = 0; i < memory.size(); ++i) {
        if (memory.bytes[i] <= 0) continue;
        const std::size_t rank = memory.rank[i];
        if (selection.rank && trace.ranks[rank].number != *selection.rank) continue;
        if (!all && !lived_in(times[rank], memory.time[i], ends[i])) continue;
        found.row.push_back(i);
        found.freed_ns.push_back(ends[i]);
    }
    return found;
}

}  // namespace shardscope::traces
