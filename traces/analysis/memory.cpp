// Replays allocations and frees in order; see memory.h.
#include "traces/analysis/memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "traces/analysis/step_windows.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

// Where in a rank's rows the peak is looked for: the states after rows [first, last), and before row `first`.
struct Range {
    std::size_t first = 0, last = 0;
    std::int64_t start = 0;  // when the state before row `first` held, at the latest
    bool initial = false;    // that state counts too
};

struct Peak {
    std::size_t rows = 0;  // how many of the rank's rows had happened
    std::int64_t time = 0;
    std::int64_t total = 0;
    CategoryBytes bytes{};
};

// The rank's rows of Trace::memory in one space, in order.
std::vector<std::vector<std::uint32_t>> rows_by_rank(const Trace& trace, MemorySpace space) {
    std::vector<std::vector<std::uint32_t>> rows(trace.ranks.size());
    const MemoryEvents& memory = trace.memory;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.space[i] == space) rows[memory.rank[i]].push_back(static_cast<std::uint32_t>(i));
    }
    return rows;
}

Range selected_range(const Trace& trace, const std::vector<std::uint32_t>& rows, const RankSteps& steps,
                     const Selection& selection) {
    const MemoryEvents& memory = trace.memory;
    const bool by_step = selection.first_step || selection.last_step;
    if (!by_step && !selection.from_ns && !selection.to_ns) {
        Range whole{0, rows.size(), 0, false};
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
    Range range{row_at(time.front().start), row_at(time.back().end), time.front().start, true};
    if (range.first == 0) range.start = std::max(range.start, trace.first_ns);
    return range;
}

Peak find_peak(const MemoryEvents& memory, const std::vector<std::uint32_t>& rows, const Range& range) {
    Peak peak;
    CategoryBytes live{};
    std::int64_t total = 0;
    std::int64_t most = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i <= range.last && i <= rows.size(); ++i) {
        // Here the state is the one after i rows.
        const bool counts = i == range.first ? range.initial : i > range.first;
        if (counts && total > most) {
            most = total;
            const std::int64_t time = i == range.first ? range.start : memory.time[rows[i - 1]];
            peak = {i, time, total, live};
        }
        if (i == rows.size()) break;
        total += memory.bytes[rows[i]];
        live[static_cast<std::size_t>(memory.category[rows[i]])] += memory.bytes[rows[i]];
    }
    return peak;
}

// Rows of the allocations that live after the first `count` rows: an address is live when its latest row is
// an allocation.
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

// Bytes by holder, largest first. What the addresses do not explain (a free that no allocation fits) is said,
// so that the holders sum to the peak.
template <typename NameOf>
std::vector<MemoryHolder> holders(const MemoryEvents& memory, const std::vector<std::uint32_t>& live,
                                  std::int64_t peak, const NameOf& name_of) {
    std::map<std::string, std::int64_t, std::less<>> bytes;
    std::int64_t known = 0;
    for (const std::uint32_t row : live) {
        const std::string_view name = name_of(row);
        const auto at = bytes.find(name);
        (at != bytes.end() ? at->second : bytes[std::string(name)]) += memory.bytes[row];
        known += memory.bytes[row];
    }
    if (known != peak) bytes["(not told by addresses)"] += peak - known;
    std::vector<MemoryHolder> sorted;
    sorted.reserve(bytes.size());
    for (const auto& [name, sum] : bytes) sorted.push_back({name, sum});
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const MemoryHolder& a, const MemoryHolder& b) { return a.bytes > b.bytes; });
    return sorted;
}

template <typename Row>
std::unordered_map<int, std::string_view> names_by_id(const std::vector<Row>& rows) {
    std::unordered_map<int, std::string_view> names;
    for (const Row& row : rows) names.emplace(row.id, row.name);
    return names;
}

// The most that the pool held in [start, end], with the value that held when it began.
std::int64_t most_reserved(const Trace& trace, int rank_index, std::int64_t start, std::int64_t end) {
    const std::optional<StringId> name = trace.strings.find("reserved_bytes");
    if (!name) return 0;
    const Counters& counters = trace.counters;
    double before = 0, most = 0;
    for (std::size_t i = 0; i < counters.size(); ++i) {
        if (counters.name[i] != *name || counters.rank[i] != rank_index || counters.time[i] > end) continue;
        if (counters.time[i] <= start) {
            before = counters.value[i];
        } else {
            most = std::max(most, counters.value[i]);
        }
    }
    return static_cast<std::int64_t>(std::max(most, before));
}

}  // namespace

MemoryReport memory_report(const Trace& trace, const Selection& selection) {
    const MemoryEvents& memory = trace.memory;
    const auto rows = rows_by_rank(trace, MemorySpace::device);
    const TraceSteps steps = find_steps(trace);
    const auto unit_names = names_by_id(trace.units);
    const auto module_names = names_by_id(trace.modules);
    const auto name_of = [](const auto& names, int id, std::string_view none) {
        const auto at = names.find(id);
        return at != names.end() ? at->second : none;
    };
    MemoryReport report;
    for (const int r : selected_ranks(trace, selection)) {
        const auto at = static_cast<std::size_t>(r);
        const Range range = selected_range(trace, rows[at], steps.ranks[at], selection);
        const Peak peak = find_peak(memory, rows[at], range);
        const std::vector<std::uint32_t> live = live_rows(memory, rows[at], peak.rows);
        RankMemory result;
        result.rank = trace.ranks[at].number;
        result.peak_bytes = peak.total;
        result.peak_time_ns = peak.time;
        result.at_peak = peak.bytes;
        result.units = holders(memory, live, peak.total, [&](std::uint32_t i) {
            return name_of(unit_names, memory.unit[i], "(no unit)");
        });
        result.modules = holders(memory, live, peak.total, [&](std::uint32_t i) {
            return name_of(module_names, memory.module[i], "(no module)");
        });
        result.buffers = holders(memory, live, peak.total, [&](std::uint32_t i) {
            const std::string_view name = trace.strings[memory.name[i]];
            return name.empty() ? std::string_view("(no name)") : name;
        });
        const bool whole =
            !selection.first_step && !selection.last_step && !selection.from_ns && !selection.to_ns;
        const IntervalSet time = selected_host_time(steps.ranks[at], selection);
        if (whole) {
            result.reserved_bytes = most_reserved(trace, r, std::numeric_limits<std::int64_t>::min(),
                                                  std::numeric_limits<std::int64_t>::max());
        } else if (!time.empty()) {
            result.reserved_bytes = most_reserved(trace, r, time.front().start, time.back().end);
        }
        for (const PredictionRow& prediction : trace.predictions) {
            if (prediction.rank != result.rank) continue;
            result.predicted_peak_bytes = prediction.peak_bytes;
            std::copy(std::begin(prediction.at_peak), std::end(prediction.at_peak),
                      result.predicted_at_peak.begin());
            result.predicted_where = prediction.where;
        }
        report.ranks.push_back(std::move(result));
    }
    return report;
}

std::vector<MemoryPoint> memory_curve(const Trace& trace, int rank_index, MemorySpace space) {
    const MemoryEvents& memory = trace.memory;
    std::vector<MemoryPoint> curve;
    MemoryPoint point;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.rank[i] != rank_index || memory.space[i] != space) continue;
        point.time = memory.time[i];
        point.total += memory.bytes[i];
        point.bytes[static_cast<std::size_t>(memory.category[i])] += memory.bytes[i];
        curve.push_back(point);
    }
    return curve;
}

}  // namespace shardscope::traces
