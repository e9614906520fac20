// See allocations.h.
#include "traces/analysis/memory/allocations.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/peak_search.h"
#include "traces/store/columns/trace.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces::analysis {

namespace {

// For each row of Trace::memory: the time of the next row with the same address.
std::vector<std::int64_t> ends_of(const store::MemoryEvents& memory) {
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

Allocations find_allocations(const store::Trace& trace, const Selection& selection) {
    const store::MemoryEvents& memory = trace.memory;
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

namespace {

template <typename Row>
std::unordered_map<std::int32_t, std::string_view> names_by_id(const std::vector<Row>& rows) {
    std::unordered_map<std::int32_t, std::string_view> names;
    for (const Row& row : rows) names.emplace(row.id, row.name);
    return names;
}

// Moves the `most` largest (0: all) to the front, in order; returns their number.
std::size_t order_largest(const store::MemoryEvents& memory, const Allocations& found,
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

AllocationsReport allocations_report(const store::Trace& trace, const Selection& selection,
                                     std::optional<schema::MemorySpace> space, std::size_t most) {
    const store::MemoryEvents& memory = trace.memory;
    const Allocations found = find_allocations(trace, selection);
    std::vector<std::vector<std::uint32_t>> places(trace.ranks.size());  // indices into `found`, by rank
    for (std::uint32_t i = 0; i < found.size(); ++i) {
        const std::uint32_t row = found.row[i];
        if (!space || memory.space[row] == *space) places[memory.rank[row]].push_back(i);
    }
    const auto units = names_by_id(trace.units), modules = names_by_id(trace.modules);
    const auto named = [](const auto& names, std::int32_t id) {
        const auto at = names.find(id);
        return at != names.end() ? at->second : std::string_view();
    };
    const auto text = [&](const store::Column<schema::StringId>& column, std::uint32_t row) {
        return column.empty() ? std::string_view() : trace.strings[column[row]];
    };
    AllocationsReport report;
    report.space = space;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        std::vector<std::uint32_t>& own = places[r.at()];
        RankAllocations rank;
        rank.rank = trace.ranks[r.at()].number;
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

namespace {

// An unknown text is empty in a table, null in JSON and an empty cell in CSV.
store::Cell known_text(std::string_view text) {
    return text.empty() ? store::Cell() : to_cell(text);
}
template <std::string_view AllocationDetail::*Text>
store::Cell text_of(const AllocationDetail& a) {
    return known_text(a.*Text);
}
store::Cell asked_by(const AllocationDetail& a) {
    const std::string_view frame = store::asking_frame(a.stack);
    return frame.empty() ? store::Cell() : store::Cell(store::short_frame(frame));
}

}  // namespace

Fields<AllocationDetail> allocation_fields() {
    using A = AllocationDetail;
    static constexpr Field<A> kFields[] = {
        {{"exact_bytes", "Bytes", Unit::count, "Its size.", in_table}, value_of<&A::bytes>},
        {{"bytes", "MiB", Unit::bytes, "Its size."}, value_of<&A::bytes>},
        {{"time_ns", "From", Unit::ns, "When it was allocated."}, value_of<&A::time>},
        {{"freed_ns", "", Unit::ns, "When it was freed; none: it was still allocated at the end.",
          in_programs},
         value_of<&A::freed>},
        {{"lived_ns", "Lived", Unit::ns, "From its allocation to its free.", in_table},
         [](const A& a) { return a.freed ? store::Cell(*a.freed - a.time) : store::Cell(); }},
        {{"category", "Category", Unit::text, "Its category."},
         [](const A& a) { return to_cell(name(a.category)); }},
        {{"space", "Space", Unit::text, "Its memory space: device, pinned, host or disk."},
         [](const A& a) { return to_cell(name(a.space)); }},
        {{"unit", "Unit", Unit::text, "The FSDP unit.", everywhere, -1, true}, text_of<&A::unit>},
        {{"module", "Module", Unit::text, "The module.", everywhere, -1, true}, text_of<&A::module>},
        {{"name", "Name", Unit::text, "The buffer.", everywhere, -1, true}, text_of<&A::name>},
        {{"annotation", "Annotation", Unit::text, "The user's annotation.", everywhere, -1, true},
         text_of<&A::annotation>},
        {{"stack", "", Unit::text, "Frames, innermost first.", in_json}, text_of<&A::stack>},
        {{"asked_for_by", "Allocated by", Unit::text, "The frame that allocated it.", in_table | in_csv, -1,
          true},
         asked_by},
        {{"phase", "Phase", Unit::text, "Forward, backward or optimizer.", everywhere, -1, true},
         [](const A& a) { return a.phase == schema::Phase::none ? store::Cell() : to_cell(name(a.phase)); }},
        {{"address", "", Unit::text, "Its address.", in_programs},
         [](const A& a) { return store::Cell(fmt::format("{:#x}", a.address)); }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
