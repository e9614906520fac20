#include "traces/analysis/memory/allocations_report.h"

#include <algorithm>
#include <unordered_map>

#include "traces/analysis/memory/allocations.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
namespace {

template <typename Row>
std::unordered_map<std::int32_t, std::string_view> names_by_id(const std::vector<Row>& rows) {
    std::unordered_map<std::int32_t, std::string_view> names;
    for (const Row& row : rows) names.emplace(row.id, row.name);
    return names;
}

// Puts the largest, at most `most` (0: all), first and in order; returns how many.
std::size_t order_largest(const MemoryEvents& memory, const Allocations& found,
                          std::vector<std::uint32_t>& places, std::size_t most) {
    const std::size_t kept = most == 0 ? places.size() : std::min(most, places.size());
    std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(kept), places.end(),
                      [&](std::uint32_t a, std::uint32_t b) {
                          const std::int64_t x = memory.bytes[found.row[a]], y = memory.bytes[found.row[b]];
                          return x != y ? x > y : a < b;
                      });
    return kept;
}

}  // namespace

AllocationsReport allocations_report(const Trace& trace, const Selection& selection,
                                     std::optional<MemorySpace> space, std::size_t most) {
    const MemoryEvents& memory = trace.memory;
    const Allocations found = find_allocations(trace, selection);
    std::vector<std::vector<std::uint32_t>> places(trace.ranks.size());  // in `found`, by rank
    for (std::uint32_t i = 0; i < found.size(); ++i) {
        const std::uint32_t row = found.row[i];
        if (!space || memory.space[row] == *space) places[memory.rank[row]].push_back(i);
    }
    const auto units = names_by_id(trace.units), modules = names_by_id(trace.modules);
    const auto named = [](const auto& names, std::int32_t id) {
        const auto at = names.find(id);
        return at != names.end() ? at->second : std::string_view();
    };
    const auto text = [&](const std::vector<StringId>& column, std::uint32_t row) {
        return column.empty() ? std::string_view() : trace.strings[column[row]];
    };
    AllocationsReport report;
    report.space = space;
    for (const int r : selected_ranks(trace, selection)) {
        std::vector<std::uint32_t>& own = places[static_cast<std::size_t>(r)];
        RankAllocations rank;
        rank.rank = trace.ranks[static_cast<std::size_t>(r)].number;
        rank.count = static_cast<std::int64_t>(own.size());
        for (const std::uint32_t i : own) rank.bytes += memory.bytes[found.row[i]];
        own.resize(order_largest(memory, found, own, most));
        rank.allocations.reserve(own.size());
        for (const std::uint32_t i : own) {
            const std::uint32_t row = found.row[i];
            AllocationDetail& a = rank.allocations.emplace_back();
            a.time = memory.time[row];
            a.bytes = memory.bytes[row];
            if (found.freed_ns[i] != kNeverFreed) a.freed = found.freed_ns[i];
            a.address = memory.address[row];
            a.category = memory.category[row];
            a.space = memory.space[row];
            a.phase = memory.phase[row];
            a.unit = named(units, memory.unit[row]);
            a.module = named(modules, memory.module[row]);
            a.name = text(memory.name, row);
            a.annotation = text(memory.annotation, row);
            a.stack = text(memory.stack, row);
        }
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

}  // namespace shardscope::traces
