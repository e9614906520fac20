// Replays a rank's allocations and frees in order; see peak_search.h.
#include "traces/analysis/peak_search.h"

#include <algorithm>
#include <limits>

#include "traces/store/memory_facts.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

std::vector<std::vector<std::uint32_t>> rows_by_rank(const Trace& trace, MemorySpace space) {
    std::vector<std::vector<std::uint32_t>> rows(trace.ranks.size());
    const MemoryEvents& memory = trace.memory;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.space[i] == space) rows[memory.rank[i]].push_back(static_cast<std::uint32_t>(i));
    }
    return rows;
}

bool counts_active(const Trace& trace) {
    return trace.config_value(kMemoryCountedKey) == kMemoryCountedActive;
}

PeakRange peak_range(const Trace& trace, const std::vector<std::uint32_t>& rows, const RankSteps& steps,
                     const Selection& selection) {
    const MemoryEvents& memory = trace.memory;
    if (selects_whole_time(selection)) {
        PeakRange whole{0, rows.size(), 0, false, counts_active(trace)};
        while (whole.first < rows.size() && memory.phase[rows[whole.first]] == Phase::setup) ++whole.first;
        if (whole.first == rows.size()) whole.first = 0;  // nothing but set-up
        if (whole.first > 0) {
            whole.initial = true;
            whole.start = memory.time[rows[whole.first - 1]];
        }
        return whole;
    }
    const IntervalSet time = selected_host_time(steps, selection);
    if (time.empty() || time.front().start >= time.back().end) return {};
    const auto row_at = [&](std::int64_t t) {
        const auto at =
            std::lower_bound(rows.begin(), rows.end(), t,
                             [&](std::uint32_t row, std::int64_t when) { return memory.time[row] < when; });
        return static_cast<std::size_t>(at - rows.begin());
    };
    PeakRange range{row_at(time.front().start), row_at(time.back().end), time.front().start, true,
                    counts_active(trace)};
    if (range.first == 0) range.start = std::max(range.start, trace.first_ns);
    return range;
}

Peak find_peak(const MemoryEvents& memory, const std::vector<std::uint32_t>& rows, const PeakRange& range) {
    Peak peak;
    CategoryBytes live{};
    std::int64_t total = 0;
    std::int64_t most = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i <= range.last && i <= rows.size(); ++i) {
        // Here the state is the one after i rows.
        const bool counts = i == range.first ? range.initial : i > range.first;
        if (counts && (total > most || (range.latest && total == most))) {
            most = total;
            const std::int64_t time = i == range.first ? range.start : memory.time[rows[i - 1]];
            peak = {i, i == range.first, time, total, live};
        }
        if (i == rows.size()) break;
        total += memory.bytes[rows[i]];
        live[static_cast<std::size_t>(memory.category[rows[i]])] += memory.bytes[rows[i]];
    }
    return peak;
}

std::vector<std::uint32_t> live_rows(const MemoryEvents& memory, const std::vector<std::uint32_t>& rows,
                                     std::size_t count) {
    std::vector<std::uint32_t> order(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return memory.address[a] != memory.address[b] ? memory.address[a] < memory.address[b] : a < b;
    });
    std::vector<std::uint32_t> live;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const bool latest = i + 1 == order.size() || memory.address[order[i]] != memory.address[order[i + 1]];
        if (latest && memory.bytes[order[i]] > 0) live.push_back(order[i]);
    }
    return live;
}

}  // namespace shardscope::traces
