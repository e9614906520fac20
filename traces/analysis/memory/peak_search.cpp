// Replays a rank's allocations and frees in order; see peak_search.h.
#include "traces/analysis/memory/peak_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

namespace {

using Rows = std::vector<std::uint32_t>;

// Rows of a space by rank, then by device index within the rank.
std::vector<std::map<std::uint16_t, Rows>> rows_by_device(const store::Trace& trace,
                                                          schema::MemorySpace space) {
    std::vector<std::map<std::uint16_t, Rows>> rows(trace.ranks.size());
    const store::MemoryEvents& memory = trace.memory;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.space[i] == space)
            rows[memory.rank[i]][memory.device[i]].push_back(static_cast<std::uint32_t>(i));
    }
    return rows;
}

}  // namespace

std::vector<Rows> rows_by_rank(const store::Trace& trace, schema::MemorySpace space, const TraceSteps& steps,
                               const Selection& selection) {
    std::vector<Rows> rows(trace.ranks.size());
    const store::MemoryEvents& memory = trace.memory;
    if (memory.device.empty() || space != schema::MemorySpace::device) {
        for (std::size_t i = 0; i < memory.size(); ++i) {
            if (memory.space[i] == space) rows[memory.rank[i]].push_back(static_cast<std::uint32_t>(i));
        }
        return rows;
    }
    auto by_device = rows_by_device(trace, space);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        std::int64_t most = std::numeric_limits<std::int64_t>::min();
        for (auto& [device, own] : by_device[r]) {
            const PeakRange range = peak_range(trace, own, steps.ranks[r], selection);
            const std::int64_t peak = find_peak(memory, own, range).total;
            if (peak <= most) continue;
            most = peak;
            rows[r] = std::move(own);
        }
    }
    return rows;
}

std::vector<bool> rows_of_fullest_devices(const store::Trace& trace) {
    const store::MemoryEvents& memory = trace.memory;
    if (memory.device.empty()) return {};
    std::vector<bool> counts(memory.size());
    for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] = memory.space[i] != schema::MemorySpace::device;
    for (const Rows& own : rows_by_rank(trace, schema::MemorySpace::device, find_steps(trace), {})) {
        for (const std::uint32_t row : own) counts[row] = true;
    }
    return counts;
}

int memory_devices(const store::Trace& trace, store::RankIndex rank) {
    const store::MemoryEvents& memory = trace.memory;
    std::set<std::uint16_t> devices;
    for (std::size_t i = 0; i < memory.device.size(); ++i) {
        if (memory.rank[i] == rank.value && memory.space[i] == schema::MemorySpace::device)
            devices.insert(memory.device[i]);
    }
    return std::max(1, static_cast<int>(devices.size()));
}

bool counts_active(const store::Trace& trace) {
    return trace.config_value(store::kMemoryCountedKey) == store::kMemoryCountedActive;
}

PeakRange peak_range(const store::Trace& trace, const std::vector<std::uint32_t>& rows,
                     const RankSteps& steps, const Selection& selection) {
    const store::MemoryEvents& memory = trace.memory;
    if (selects_whole_time(selection)) {
        PeakRange whole{0, rows.size(), 0, false, counts_active(trace)};
        while (whole.first < rows.size() && memory.phase[rows[whole.first]] == schema::Phase::setup)
            ++whole.first;
        if (whole.first == rows.size()) whole.first = 0;  // the trace has only set-up
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

Peak find_peak(const store::MemoryEvents& memory, const std::vector<std::uint32_t>& rows,
               const PeakRange& range) {
    Peak peak;
    CategoryBytes live{};
    std::int64_t total = 0;
    std::int64_t most = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i <= range.last && i <= rows.size(); ++i) {
        // Here the state is that after i rows.
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

std::vector<std::uint32_t> live_rows(const store::MemoryEvents& memory,
                                     const std::vector<std::uint32_t>& rows, std::size_t count) {
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

}  // namespace shardscope::traces::analysis
