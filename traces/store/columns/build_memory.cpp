// Allocations, frees, segments and counters. Sources without categories record the allocating thread and the
// allocator's own totals: then the ranges around the allocation determine its category, and events are added
// for the part of a total that the recorded ones do not explain.
#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "traces/schema/sort_rows.h"
#include "traces/store/columns/build_columns.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/memory_origin.h"
#include "traces/store/columns/nesting.h"
#include "traces/store/columns/row_order.h"

namespace shardscope::traces::store {

namespace {

constexpr std::string_view kReserved = "reserved_bytes";  // the counter

// The purpose of an allocation according to the ranges around it.
struct Origin {
    schema::MemoryCategory category = schema::MemoryCategory::other;
    schema::StringId name = schema::StringId::empty, annotation = schema::StringId::empty;
};

class Origins {
  public:
    explicit Origins(const Trace& trace) : trace_(trace), categories_(trace.strings.size()) {}

    // `innermost`: the range around it, -1 none.
    Origin of(std::int32_t innermost) {
        Origin origin;
        const HostRanges& ranges = trace_.ranges;
        schema::StringId around = schema::StringId::empty, operation = schema::StringId::empty;
        for (std::int32_t r = innermost; r >= 0; r = ranges.parent[static_cast<std::size_t>(r)]) {
            const auto i = static_cast<std::size_t>(r);
            const schema::StringId name = ranges.name[i];
            const RangeKind kind = ranges.kind[i];
            if (kind == RangeKind::operation && operation == schema::StringId::empty) operation = name;
            if (kind == RangeKind::annotation && around == schema::StringId::empty) around = name;
            if (kind == RangeKind::step || kind == RangeKind::function) continue;
            if (origin.category != schema::MemoryCategory::other) continue;
            origin.category = category(name);
            if (origin.category != schema::MemoryCategory::other) origin.annotation = name;
        }
        if (origin.annotation == schema::StringId::empty) origin.annotation = around;
        if (operation == schema::StringId::empty && innermost >= 0) {
            operation = ranges.name[static_cast<std::size_t>(innermost)];
        }
        origin.name = operation;
        return origin;
    }

  private:
    schema::MemoryCategory category(schema::StringId name) {
        auto& known = categories_[static_cast<std::size_t>(name)];
        if (!known) known = category_of_origin(trace_.strings[name]);
        return *known;
    }
    const Trace& trace_;
    std::vector<std::optional<schema::MemoryCategory>> categories_;  // by name
};

// Calls visit() with a pointer to each column that the trace keeps; the others only serve to build it.
template <typename Visit>
void each_column(Visit visit) {
    using M = PendingMemory;
    const auto all = [&](auto... columns) { (visit(columns), ...); };
    all(&M::time, &M::bytes, &M::address, &M::unit, &M::module, &M::name, &M::rank_slot, &M::category,
        &M::space, &M::phase, &M::annotation, &M::stack, &M::device, &M::stream);
}

// A key of the row's rank and space.
std::uint64_t space_of(const PendingMemory& m, std::size_t row) {
    return std::uint64_t{m.rank_slot[row]} * schema::kMemorySpaces + static_cast<std::uint64_t>(m.space[row]);
}

// A key of the row's allocator: each device of a rank has one.
std::uint64_t allocator_of(const PendingMemory& m, std::size_t row) {
    return space_of(m, row) << 16 | (m.device.empty() ? 0U : m.device[row]);
}

bool asks_for_origin(const PendingMemory& m, std::size_t row) {
    const auto none = [&](const Column<schema::StringId>& column) {
        return column.empty() || column[row] == schema::StringId::empty;
    };
    return m.global_tid[row] != 0 && m.category[row] == schema::MemoryCategory::other && none(m.annotation) &&
           none(m.stack);
}

// Names and categories from the enclosing ranges; a free takes those of its allocation.
void tell_origins(PendingMemory& m, const ThreadLookup& threads, const Trace& trace) {
    if (m.global_tid.empty()) return;
    std::vector<std::int64_t> times;
    std::vector<std::uint16_t> on;
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < m.size(); ++i) {
        if (!asks_for_origin(m, i)) continue;
        asked.push_back(i);
        if (const int thread = threads.find(m.global_tid[i]); m.bytes[i] > 0 && thread >= 0) {
            times.push_back(m.time[i]);
            on.push_back(static_cast<std::uint16_t>(thread));
        }
    }
    if (asked.empty()) return;
    const HostRanges& ranges = trace.ranges;
    const std::vector<std::int32_t> around =
        nest(ranges.start, ranges.end, ranges.thread, times, on).innermost;
    fill_rare(m.annotation, m.size(), schema::StringId::empty);
    if (m.annotation.empty()) m.annotation.assign(m.size(), schema::StringId::empty);
    Origins origins(trace);
    std::unordered_map<std::uint64_t, Origin> live;  // by rank, space and address
    std::size_t next = 0;
    bool annotated = false;
    for (const std::size_t i : asked) {
        const std::uint64_t block = m.address[i] ^ space_of(m, i) << 48;
        Origin origin;
        if (m.bytes[i] > 0) {
            if (threads.find(m.global_tid[i]) >= 0) origin = origins.of(around[next++]);
            live[block] = origin;
        } else if (const auto it = live.find(block); it != live.end()) {
            origin = it->second;
            live.erase(it);
        }
        m.category[i] = origin.category;
        m.annotation[i] = origin.annotation;
        annotated = annotated || origin.annotation != schema::StringId::empty;
        if (m.name[i] == schema::StringId::empty) m.name[i] = origin.name;
    }
    if (!annotated && std::all_of(m.annotation.begin(), m.annotation.end(),
                                  [](schema::StringId a) { return a == schema::StringId::empty; })) {
        m.annotation.clear();
    }
}

// Adds an event for each difference between an allocator's total and the sum of its events.
void correct_totals(PendingMemory& m, Trace& trace) {
    if (m.total.empty()) return;
    const schema::StringId before = trace.strings.intern(kBeforeTheTrace),
                           missed = trace.strings.intern(kNotInTheTrace);
    PendingMemory result;
    const auto copy = [&](std::size_t i) {
        each_column([&](auto column) {
            if (!(m.*column).empty()) (result.*column).push_back((m.*column)[i]);
        });
    };
    struct Live {
        std::int64_t bytes = 0;
        bool begun = false;
    };
    std::unordered_map<std::uint64_t, Live> spaces;
    for (std::size_t i = 0; i < m.size(); ++i) {
        Live& live = spaces[allocator_of(m, i)];
        const std::int64_t difference = m.total[i] - m.bytes[i] - live.bytes;
        if (m.total[i] >= 0 && difference != 0) {
            copy(i);
            result.bytes.back() = difference;
            result.address.back() = 0;
            result.unit.back() = result.module.back() = -1;
            result.name.back() = live.begun ? missed : before;
            result.category.back() = schema::MemoryCategory::other;
            result.phase.back() = schema::Phase::none;
            if (!result.annotation.empty()) result.annotation.back() = schema::StringId::empty;
            if (!result.stack.empty()) result.stack.back() = schema::StringId::empty;
            live.bytes += difference;
        }
        live.begun = true;
        live.bytes += m.bytes[i];
        copy(i);
    }
    m = std::move(result);
}

// By slot of a rank: the index of its device with the highest peak of allocated memory.
std::vector<std::uint16_t> fullest_devices(const PendingMemory& m) {
    std::vector<std::uint16_t> fullest;
    if (m.device.empty()) return fullest;
    std::unordered_map<std::uint64_t, std::int64_t> live;
    std::vector<std::int64_t> most;
    for (std::size_t i = 0; i < m.size(); ++i) {
        if (m.space[i] != schema::MemorySpace::device) continue;
        std::int64_t& total = live[allocator_of(m, i)];
        total = m.total.empty() || m.total[i] < 0 ? total + m.bytes[i] : m.total[i];
        if (m.rank_slot[i] >= most.size()) {
            most.resize(m.rank_slot[i] + std::size_t{1}, -1);
            fullest.resize(most.size(), 0);
        }
        if (total <= most[m.rank_slot[i]]) continue;
        most[m.rank_slot[i]] = total;
        fullest[m.rank_slot[i]] = m.device[i];
    }
    return fullest;
}

// Writes the caching allocator's reserved memory as a counter with one value per change; of several devices,
// only the one with the highest peak.
void tell_reserved(const PendingRows& rows, std::vector<schema::CounterRow>& counters, Trace& trace) {
    const PendingMemory& m = rows.memory;
    if (m.reserved.empty()) return;
    const schema::StringId name = trace.strings.intern(kReserved);
    const std::vector<std::uint16_t> fullest = fullest_devices(m);
    std::unordered_map<std::uint32_t, std::int64_t> last;  // by rank
    for (std::size_t i = 0; i < m.size(); ++i) {
        if (m.reserved[i] < 0 || m.space[i] != schema::MemorySpace::device) continue;
        if (!fullest.empty() && m.device[i] != fullest[m.rank_slot[i]]) continue;
        const auto [it, added] = last.try_emplace(m.rank_slot[i], m.reserved[i]);
        if (!added && it->second == m.reserved[i]) continue;
        it->second = m.reserved[i];
        const auto rank = static_cast<int>(rows.memory_ranks[m.rank_slot[i]].a);
        counters.push_back({m.time[i], rank, name, static_cast<double>(m.reserved[i])});
    }
}

void sort_by_time(PendingMemory& m) {
    const std::size_t size = m.size();
    fill_rare(m.global_tid, size, std::int64_t{0});
    fill_rare(m.total, size, std::int64_t{-1});
    fill_rare(m.reserved, size, std::int64_t{-1});
    fill_rare(m.annotation, size, schema::StringId::empty);
    fill_rare(m.stack, size, schema::StringId::empty);
    fill_rare(m.device, size, std::uint16_t{0});
    fill_rare(m.stream, size, -1);
    const auto order = row_order(size, [&](std::size_t a, std::size_t b) { return m.time[a] < m.time[b]; });
    each_column([&](auto column) { reorder(m.*column, order); });
    for (auto* column : {&m.global_tid, &m.total, &m.reserved}) reorder(*column, order);
}

}  // namespace

void build_memory(PendingRows& rows, const RankLookup& ranks, const ThreadLookup& threads, Trace& trace) {
    PendingMemory& m = rows.memory;
    sort_by_time(m);
    tell_origins(m, threads, trace);
    tell_reserved(rows, rows.counters, trace);
    correct_totals(m, trace);
    std::vector<std::uint16_t> index_of_rank;
    for (const SlotKey& rank : rows.memory_ranks.keys())
        index_of_rank.push_back(ranks.of_number(static_cast<int>(rank.a)).column());
    m.rank.reserve(m.size());
    for (const std::uint32_t slot : m.rank_slot) m.rank.push_back(index_of_rank[slot]);
    trace.memory = std::move(static_cast<MemoryEvents&>(m));
}

void build_segments(std::vector<schema::SegmentRow>& rows, const RankLookup& ranks, Trace& trace) {
    sort_rows(rows, [](const schema::SegmentRow& a, const schema::SegmentRow& b) { return a.time < b.time; });
    Segments& s = trace.segments;
    for (const schema::SegmentRow& r : rows) {
        s.time.push_back(r.time);
        s.bytes.push_back(r.bytes);
        s.address.push_back(r.address);
        s.stream.push_back(r.stream);
        s.rank.push_back(ranks.of_number(r.rank).column());
    }
}

void build_counters(std::vector<schema::CounterRow>& rows, const RankLookup& ranks, Trace& trace) {
    sort_rows(rows, [](const schema::CounterRow& a, const schema::CounterRow& b) { return a.time < b.time; });
    for (const schema::CounterRow& r : rows) {
        trace.counters.time.push_back(r.time);
        trace.counters.value.push_back(r.value);
        trace.counters.name.push_back(r.name);
        trace.counters.rank.push_back(r.rank >= 0 ? ranks.of_number(r.rank).column() : kNoRank);
        trace.counters.host.push_back(r.host);
        trace.counters.device.push_back(r.device);
    }
}

}  // namespace shardscope::traces::store
