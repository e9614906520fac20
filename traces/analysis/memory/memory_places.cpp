// See memory_places.h.
#include "traces/analysis/memory/memory_places.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>

#include "traces/analysis/communication/host_collectives.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/trace.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces {
namespace {

// Sums the bytes of the live rows by their text in a column.
std::unordered_map<StringId, std::int64_t> by_text(const MemoryEvents& memory,
                                                   const std::vector<StringId>& column,
                                                   const std::vector<std::uint32_t>& live) {
    std::unordered_map<StringId, std::int64_t> bytes;
    for (const std::uint32_t row : live) bytes[column[row]] += memory.bytes[row];
    return bytes;
}

// Adds what no address explains, so that the holders sum to the peak, and sorts them, largest first.
void close(std::vector<MemoryHolder>& holders, std::int64_t peak) {
    for (const MemoryHolder& holder : holders) peak -= holder.bytes;
    if (peak != 0) holders.push_back({"(unattributed)", peak});
    std::sort(holders.begin(), holders.end(), [](const MemoryHolder& a, const MemoryHolder& b) {
        return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
    });
}

std::vector<MemoryHolder> by_annotation(const Trace& trace, std::int64_t peak,
                                        const std::vector<std::uint32_t>& live) {
    std::vector<MemoryHolder> holders;
    for (const auto& [id, bytes] : by_text(trace.memory, trace.memory.annotation, live)) {
        holders.push_back(
            {id == StringId::empty ? "(no annotation)" : std::string(trace.strings[id]), bytes});
    }
    close(holders, peak);
    return holders;
}

// Stacks that differ only in PyTorch's frames are one holder.
std::vector<MemoryHolder> by_stack(const Trace& trace, std::int64_t peak,
                                   const std::vector<std::uint32_t>& live) {
    struct Place {
        std::int64_t bytes = 0, largest = 0;
        StringId stack = StringId::empty;
    };
    std::unordered_map<std::string_view, Place> places;
    for (const auto& [id, bytes] : by_text(trace.memory, trace.memory.stack, live)) {
        Place& place = places[asking_frame(trace.strings[id])];
        place.bytes += bytes;
        if (bytes <= place.largest) continue;
        place.largest = bytes;
        place.stack = id;
    }
    std::vector<MemoryHolder> holders;
    for (const auto& [frame, place] : places) {
        MemoryHolder& holder = holders.emplace_back();
        holder.name = frame.empty() ? "(no stack)" : short_frame(frame);
        holder.bytes = place.bytes;
        holder.stack = trace.strings[place.stack];
    }
    close(holders, peak);
    return holders;
}

}  // namespace

std::int64_t moment_of(const Trace& trace, int rank_index, const std::vector<std::uint32_t>& rows,
                       const Peak& peak) {
    if (!counts_active(trace) || peak.rows == 0 || peak.rows >= rows.size()) return peak.time;
    const std::int64_t next = trace.memory.time[rows[peak.rows]];
    const Counters& counters = trace.counters;
    auto at = static_cast<std::size_t>(std::upper_bound(counters.time.begin(), counters.time.end(), next) -
                                       counters.time.begin());
    for (; at > 0 && counters.time[at - 1] > peak.time; --at) {
        if (counters.rank[at - 1] == rank_index) return counters.time[at - 1];
    }
    return peak.time;
}

void add_places(const Trace& trace, int rank_index, const Peak& peak, const std::vector<std::uint32_t>& live,
                RankMemory& result) {
    const auto told = [&](const std::vector<StringId>& column) {
        return std::any_of(live.begin(), live.end(),
                           [&](std::uint32_t row) { return column[row] != StringId::empty; });
    };
    const MemoryEvents& memory = trace.memory;
    result.until_last_use = counts_active(trace);
    if (!memory.annotation.empty() && told(memory.annotation))
        result.annotations = by_annotation(trace, peak.total, live);
    if (!memory.stack.empty() && told(memory.stack)) result.stacks = by_stack(trace, peak.total, live);
    const Fragmentation fragmentation = fragmentation_at(trace, rank_index, peak.time, live);
    if (fragmentation.segments > 0) result.fragmentation = fragmentation;
}

std::optional<MemoryGrowth> growth_of(const Trace& trace, int rank_index,
                                      const std::vector<std::uint32_t>& rows, const RankSteps& steps,
                                      const Selection& selection) {
    constexpr std::int64_t kFewSteps = 3, kShare = 100;
    if (trace.steps.empty()) return std::nullopt;
    const MemoryEvents& memory = trace.memory;
    const Interval time = selected_time(selection);
    MemoryGrowth growth;
    std::int64_t live = 0, total = 0;
    std::size_t next = 0;
    for (std::int64_t s = 0; s < steps.kept(); ++s) {
        const StepWindow& step = steps.steps[static_cast<std::size_t>(s)];
        if (!selection.has_step(step.number) || step.host.start < time.start || step.host.end > time.end)
            continue;
        for (; next < rows.size() && memory.time[rows[next]] < step.host.end; ++next) {
            total += memory.bytes[rows[next]];
            if (memory.category[rows[next]] == MemoryCategory::communication)
                live += memory.bytes[rows[next]];
        }
        if (growth.steps++ == 0) {
            growth.first_bytes = live;
        } else if (live <= growth.last_bytes) {
            return std::nullopt;
        }
        growth.last_bytes = live;
    }
    if (growth.steps < kFewSteps || kShare * (growth.last_bytes - growth.first_bytes) < total)
        return std::nullopt;
    for (std::size_t i = 0; i < trace.ranges.size() && growth.host_library.empty(); ++i) {
        if (trace.threads[trace.ranges.thread[i]].rank == rank_index)
            growth.host_library = host_library(trace.strings[trace.ranges.name[i]]);
    }
    return growth;
}

std::vector<MemoryFailure> failures_of(const Trace& trace, int rank, const RankSteps& steps,
                                       const Selection& selection) {
    std::vector<MemoryFailure> failures;
    const IntervalSet time = selected_host_time(steps, selection);
    for (const DiagnosticRow& row : trace.diagnostics) {
        const std::string_view text = row.text;
        if (!text.starts_with(kOutOfMemory)) continue;
        int number = -1;
        std::from_chars(text.data() + kOutOfMemory.size(), text.data() + text.size(), number);
        if (number != rank) continue;
        const bool whole = selects_whole_time(selection);
        const bool selected = std::any_of(time.begin(), time.end(), [&](const Interval& i) {
            return row.time >= i.start && row.time < i.end;
        });
        if (whole || selected) failures.push_back({row.time, row.text});
    }
    return failures;
}

}  // namespace shardscope::traces
