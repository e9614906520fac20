// Allocations, frees, segments and counters. Sources that know no categories tell the thread that asked and
// the allocator's own totals: then the ranges around the allocation say what it is for, and what the events
// leave out is put in.
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "traces/store/build_columns.h"
#include "traces/store/memory_origin.h"
#include "traces/store/nesting.h"

namespace shardscope::traces {

namespace {

constexpr std::string_view kReserved = "reserved_bytes";  // the counter
constexpr std::string_view kBefore = "before the trace", kMissed = "not in the trace";

// What the ranges around an allocation say of it.
struct Origin {
    MemoryCategory category = MemoryCategory::other;
    StringId name = StringId::empty, annotation = StringId::empty;
};

class Origins {
  public:
    explicit Origins(const Trace& trace) : trace_(trace), categories_(trace.strings.size()) {}

    // `innermost`: the range around it, -1 none.
    Origin of(std::int32_t innermost) {
        Origin origin;
        const HostRanges& ranges = trace_.ranges;
        StringId around = StringId::empty, operation = StringId::empty;
        for (std::int32_t r = innermost; r >= 0; r = ranges.parent[static_cast<std::size_t>(r)]) {
            const auto i = static_cast<std::size_t>(r);
            const StringId name = ranges.name[i];
            const RangeKind kind = ranges.kind[i];
            if (kind == RangeKind::operation && operation == StringId::empty) operation = name;
            if (kind == RangeKind::annotation && around == StringId::empty) around = name;
            if (kind == RangeKind::step || kind == RangeKind::function) continue;
            if (origin.category != MemoryCategory::other) continue;
            origin.category = category(name);
            if (origin.category != MemoryCategory::other) origin.annotation = name;
        }
        if (origin.annotation == StringId::empty) origin.annotation = around;
        if (operation == StringId::empty && innermost >= 0) {
            operation = ranges.name[static_cast<std::size_t>(innermost)];
        }
        origin.name = operation;
        return origin;
    }

  private:
    MemoryCategory category(StringId name) {
        auto& known = categories_[static_cast<std::size_t>(name)];
        if (!known) known = category_of_origin(trace_.strings[name]);
        return *known;
    }
    const Trace& trace_;
    std::vector<std::optional<MemoryCategory>> categories_;  // by name
};

// The live bytes of each space of a rank.
class Totals {
  public:
    std::int64_t& of(const MemoryRow& row) { return live_[key(row)]; }
    bool first(const MemoryRow& row) const { return !live_.contains(key(row)); }

  private:
    static std::int64_t key(const MemoryRow& row) {
        return std::int64_t{row.rank} * kMemorySpaces + static_cast<int>(row.space);
    }
    std::unordered_map<std::int64_t, std::int64_t> live_;
};

bool asks_for_origin(const MemoryRow& row) {
    return row.global_tid != 0 && row.annotation == StringId::empty && row.stack == StringId::empty &&
           row.category == MemoryCategory::other;
}

// Names and categories from the ranges around; a free is of what its allocation was. `rows` are sorted.
void tell_origins(std::vector<MemoryRow>& rows, const ThreadIndex& threads, const Trace& trace) {
    std::vector<std::int64_t> times;
    std::vector<std::uint16_t> on;
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!asks_for_origin(rows[i])) continue;
        asked.push_back(i);
        if (const int thread = threads.find(rows[i].global_tid); rows[i].bytes > 0 && thread >= 0) {
            times.push_back(rows[i].time);
            on.push_back(static_cast<std::uint16_t>(thread));
        }
    }
    if (asked.empty()) return;
    const HostRanges& ranges = trace.ranges;
    const std::vector<std::int32_t> around =
        nest(ranges.start, ranges.end, ranges.thread, times, on).innermost;
    Origins origins(trace);
    std::unordered_map<std::uint64_t, Origin> live;  // by rank, space and address
    std::size_t next = 0;
    for (const std::size_t i : asked) {
        MemoryRow& row = rows[i];
        const std::uint64_t block = row.address ^ (static_cast<std::uint64_t>(row.rank) << 50) ^
                                    (static_cast<std::uint64_t>(row.space) << 48);
        Origin origin;
        if (row.bytes > 0) {
            if (threads.find(row.global_tid) >= 0) origin = origins.of(around[next++]);
            live[block] = origin;
        } else if (const auto it = live.find(block); it != live.end()) {
            origin = it->second;
            live.erase(it);
        }
        row.category = origin.category;
        row.annotation = origin.annotation;
        if (row.name == StringId::empty) row.name = origin.name;
    }
}

// Where an allocator's total is not what its events add up to, an event puts the difference in.
std::vector<MemoryRow> with_corrections(std::vector<MemoryRow> rows, Trace& trace) {
    const bool told = std::any_of(rows.begin(), rows.end(), [](const MemoryRow& r) { return r.total >= 0; });
    if (!told) return rows;
    const StringId before = trace.strings.intern(kBefore), missed = trace.strings.intern(kMissed);
    std::vector<MemoryRow> result;
    result.reserve(rows.size());
    Totals totals;
    for (const MemoryRow& row : rows) {
        const bool first = totals.first(row);
        std::int64_t& live = totals.of(row);
        if (row.total >= 0 && live + row.bytes != row.total) {
            result.push_back({.time = row.time,
                              .rank = row.rank,
                              .bytes = row.total - row.bytes - live,
                              .space = row.space,
                              .name = first ? before : missed});
            live = row.total - row.bytes;
        }
        live += row.bytes;
        result.push_back(row);
    }
    return result;
}

// What the caching allocator holds becomes a counter, which tells each change.
void tell_reserved(const std::vector<MemoryRow>& rows, std::vector<CounterRow>& counters, Trace& trace) {
    std::unordered_map<int, std::int64_t> last;
    StringId name = StringId::empty;
    for (const MemoryRow& row : rows) {
        if (row.reserved < 0 || row.space != MemorySpace::device) continue;
        if (name == StringId::empty) name = trace.strings.intern(kReserved);
        const auto [it, added] = last.try_emplace(row.rank, row.reserved);
        if (!added && it->second == row.reserved) continue;
        it->second = row.reserved;
        counters.push_back({row.time, row.rank, name, static_cast<double>(row.reserved)});
    }
}

template <typename Member>
void fill_if_any(const std::vector<MemoryRow>& rows, Member member, std::vector<StringId>& column) {
    const bool any = std::any_of(rows.begin(), rows.end(),
                                 [&](const MemoryRow& r) { return r.*member != StringId::empty; });
    if (!any) return;
    column.reserve(rows.size());
    for (const MemoryRow& r : rows) column.push_back(r.*member);
}

}  // namespace

void build_memory(std::vector<MemoryRow>& rows, const RankIndex& ranks, const ThreadIndex& threads,
                  std::vector<CounterRow>& counters, Trace& trace) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const MemoryRow& a, const MemoryRow& b) { return a.time < b.time; });
    tell_origins(rows, threads, trace);
    tell_reserved(rows, counters, trace);
    rows = with_corrections(std::move(rows), trace);
    MemoryEvents& m = trace.memory;
    for (const MemoryRow& r : rows) {
        m.time.push_back(r.time);
        m.bytes.push_back(r.bytes);
        m.address.push_back(r.address);
        m.unit.push_back(r.unit);
        m.module.push_back(r.module);
        m.name.push_back(r.name);
        m.rank.push_back(ranks.of_number(r.rank));
        m.category.push_back(r.category);
        m.space.push_back(r.space);
        m.phase.push_back(r.phase);
    }
    fill_if_any(rows, &MemoryRow::annotation, m.annotation);
    fill_if_any(rows, &MemoryRow::stack, m.stack);
}

void build_segments(std::vector<SegmentRow>& rows, const RankIndex& ranks, Trace& trace) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const SegmentRow& a, const SegmentRow& b) { return a.time < b.time; });
    Segments& s = trace.segments;
    for (const SegmentRow& r : rows) {
        s.time.push_back(r.time);
        s.bytes.push_back(r.bytes);
        s.address.push_back(r.address);
        s.stream.push_back(r.stream);
        s.rank.push_back(ranks.of_number(r.rank));
    }
}

void build_counters(std::vector<CounterRow>& rows, const RankIndex& ranks, Trace& trace) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const CounterRow& a, const CounterRow& b) { return a.time < b.time; });
    for (const CounterRow& r : rows) {
        trace.counters.time.push_back(r.time);
        trace.counters.value.push_back(r.value);
        trace.counters.name.push_back(r.name);
        trace.counters.rank.push_back(r.rank >= 0 ? ranks.of_number(r.rank) : kNoRank);
    }
}

}  // namespace shardscope::traces
