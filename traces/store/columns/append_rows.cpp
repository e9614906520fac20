#include "traces/store/columns/append_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "traces/store/on_cores.h"

namespace shardscope::traces::store {
namespace {

// Values of one sink as those of another: strings, or slots.
template <typename T>
using Numbers = std::vector<T>;

Numbers<std::uint32_t> numbers_of(const Slots& from, Slots& into) {
    Numbers<std::uint32_t> numbers;
    numbers.reserve(from.size());
    for (const SlotKey& key : from.keys()) numbers.push_back(into.of(key.a, key.b));
    return numbers;
}

template <typename Values>
void append(const Values& from, Values& into) {
    into.reserve(into.size() + from.size());
    for (const auto value : from) into.push_back(value);
}

template <typename Values, typename T>
void append(const Values& from, Values& into, const Numbers<T>& numbers) {
    into.reserve(into.size() + from.size());
    for (const auto value : from) into.push_back(numbers[static_cast<std::size_t>(value)]);
}

// A rare column ends with its last row that has a value; `before` and `rows` are the numbers of rows of both.
template <typename Values, typename T = typename Values::value_type>
void append_rare(const Values& from, Values& into, std::size_t before, T none) {
    if (from.empty()) return;
    into.resize(before, none);
    append(from, into);
}
void append_rare_texts(const auto& from, auto& into, std::size_t before,
                       const Numbers<schema::StringId>& texts) {
    if (from.empty()) return;
    into.resize(before, schema::StringId::empty);
    append(from, into, texts);
}

}  // namespace

bool append_rows(PendingRows&& from, const PartStrings& strings, PendingRows& into,
                 StringTable& into_strings) {
    if (from.lasting > PendingRows::kAllTogether - into.lasting ||
        from.moved > PendingRows::kMovedTogether - into.moved)
        return false;
    into.lasting += from.lasting;
    into.moved += from.moved;
    into.refused += from.refused;
    into.first = std::min(into.first, from.first);
    into.last = std::max(into.last, from.last);

    Numbers<schema::StringId> texts;
    texts.reserve(strings.all.size());
    for (std::size_t t = 0; t < strings.all.size(); ++t) {
        const auto id = static_cast<schema::StringId>(t);
        texts.push_back(t < strings.common ? id : into_strings.intern(strings.all[id]));
    }
    const Numbers<std::uint32_t> threads = numbers_of(from.threads, into.threads),
                                 ranks = numbers_of(from.memory_ranks, into.memory_ranks),
                                 lanes = numbers_of(from.device.lanes, into.device.lanes);
    Numbers<std::uint32_t> domains;
    for (std::uint32_t d = 0; d < from.domains.size(); ++d) {
        SlotKey key = from.domains[d];
        if (key.a == -1) key.b = static_cast<std::int64_t>(texts[static_cast<std::size_t>(key.b)]);
        domains.push_back(into.domains.of(key.a, key.b));
        if (from.domain_name(d) != schema::StringId::empty)
            into.name_domain(domains.back(), texts[static_cast<std::size_t>(from.domain_name(d))]);
    }

    const PendingDevice& d = from.device;
    PendingDevice& to_d = into.device;
    const PendingRanges& r = from.ranges;
    PendingRanges& to_r = into.ranges;
    const PendingMemory& m = from.memory;
    PendingMemory& to_m = into.memory;
    const std::size_t devices = to_d.size(), ranges = to_r.size(), memories = to_m.size();
    const std::function<void()> columns[] = {
        [&] { append(d.start, to_d.start); },
        [&] { append(d.end, to_d.end); },
        [&] { append(d.correlation, to_d.correlation); },
        [&] { append(d.bytes, to_d.bytes); },
        [&] { append(d.name, to_d.name, texts); },
        [&] { append(d.lane, to_d.lane, lanes); },
        [&] { append(d.kind, to_d.kind); },
        [&] { append(d.copy_kind, to_d.copy_kind); },
        [&] { append_rare(d.external_id, to_d.external_id, devices, std::int64_t{0}); },
        [&] { append_rare(d.blocks_per_sm, to_d.blocks_per_sm, devices, -1.0F); },
        [&] { append_rare(d.occupancy, to_d.occupancy, devices, -1.0F); },

        [&] { append(from.runtime.start, into.runtime.start); },
        [&] { append(from.runtime.end, into.runtime.end); },
        [&] { append(from.runtime.correlation, into.runtime.correlation); },
        [&] { append(from.runtime.name, into.runtime.name, texts); },
        [&] { append(from.runtime.thread, into.runtime.thread, threads); },

        [&] { append(r.start, to_r.start); },
        [&] { append(r.end, to_r.end); },
        [&] { append(r.name, to_r.name, texts); },
        [&] { append(r.module, to_r.module); },
        [&] { append(r.thread, to_r.thread, threads); },
        [&] { append(r.domain, to_r.domain, domains); },
        [&] { append_rare(r.external_id, to_r.external_id, ranges, std::int64_t{0}); },
        [&] { append_rare_texts(r.detail, to_r.detail, ranges, texts); },

        [&] { append(from.marks.time, into.marks.time); },
        [&] { append(from.marks.name, into.marks.name, texts); },
        [&] { append(from.marks.thread, into.marks.thread, threads); },

        [&] { append(m.time, to_m.time); },
        [&] { append(m.bytes, to_m.bytes); },
        [&] { append(m.address, to_m.address); },
        [&] { append(m.unit, to_m.unit); },
        [&] { append(m.module, to_m.module); },
        [&] { append(m.name, to_m.name, texts); },
        [&] { append(m.rank_slot, to_m.rank_slot, ranks); },
        [&] { append(m.category, to_m.category); },
        [&] { append(m.space, to_m.space); },
        [&] { append(m.phase, to_m.phase); },
        [&] { append_rare(m.global_tid, to_m.global_tid, memories, std::int64_t{0}); },
        [&] { append_rare(m.total, to_m.total, memories, std::int64_t{-1}); },
        [&] { append_rare(m.reserved, to_m.reserved, memories, std::int64_t{-1}); },
        [&] { append_rare_texts(m.annotation, to_m.annotation, memories, texts); },
        [&] { append_rare_texts(m.stack, to_m.stack, memories, texts); },
        [&] { append_rare(m.device, to_m.device, memories, std::uint16_t{0}); },
        [&] { append_rare(m.stream, to_m.stream, memories, std::int32_t{-1}); },
    };
    on_cores(cores_for(from.ranges.size() + from.marks.size() + from.device.size() + from.runtime.size() +
                       from.memory.size()),
             std::size(columns), [&](std::size_t c) { columns[c](); });
    return true;
}

}  // namespace shardscope::traces::store
