// Allocations by category, segments, counters, the flight recorder's entries; in exports of other tools,
// CUDA's own allocations.
#include <algorithm>
#include <map>
#include <utility>

#include "traces/schema/enums.h"
#include "traces/store/columns/device_streams.h"
#include "traces/store/load/load_source.h"

namespace shardscope::traces::store {

namespace {

void load_allocations(LoadSource& source) {
    PendingRows& rows = source.sink.pending();
    PendingMemory& m = rows.memory;
    const auto room = static_cast<std::size_t>(source.rows_at_most("SHARD_MEMORY"));
    const auto reserve = [&](auto&... columns) { (columns.reserve(room), ...); };
    reserve(m.time, m.bytes, m.address, m.unit, m.module, m.name, m.rank_slot, m.category, m.space, m.phase);
    source.scan_fast(
        "SHARD_MEMORY",
        {"time", "rank", "address", "bytes", "category", "space", "phase", "unit", "module", "nameId",
         "globalTid", "total", "reserved", "annotationId", "stackId", "streamId"},
        [&](const FastRow& r) {
            const std::int64_t time = r.integer(0), bytes = r.integer(3);
            if (!rows.accept_bytes(bytes) || !rows.accept(time, time)) return;
            const std::size_t at = m.size();
            m.time.push_back(time);
            m.rank_slot.push_back(rows.memory_ranks.of(narrow(r.integer(1))));
            m.address.push_back(static_cast<std::uint64_t>(r.integer(2)));
            m.bytes.push_back(bytes);
            m.category.push_back(
                to_enum(r.integer(4), schema::kMemoryCategories, schema::MemoryCategory::other));
            m.space.push_back(to_enum(r.integer(5), schema::kMemorySpaces, schema::MemorySpace::host));
            m.phase.push_back(to_enum(r.integer(6), schema::kPhases, schema::Phase::none));
            m.unit.push_back(narrow(r.integer_or(7, -1)));
            m.module.push_back(narrow(r.integer_or(8, -1)));
            m.name.push_back(source.string_or_empty(r, 9));
            put_rare(m.global_tid, at, r.integer(10), std::int64_t{0});
            put_rare(m.total, at, PendingRows::known_total(r.integer_or(11, -1)), std::int64_t{-1});
            put_rare(m.reserved, at, PendingRows::known_total(r.integer_or(12, -1)), std::int64_t{-1});
            put_rare(m.annotation, at, source.string_or_empty(r, 13), schema::StringId::empty);
            put_rare(m.stack, at, source.string_or_empty(r, 14), schema::StringId::empty);
            put_rare(m.device, at, device_of_stream(narrow(r.integer(15))), std::uint16_t{0});
            put_rare(m.stream, at, narrow(r.integer_or(15, -1)), -1);
        });
}

struct Owner {  // the rank that owns a device in a process
    int rank = 0;
    std::size_t device = 0;  // its index among the rank's devices
};

void load_cuda_memory(LoadSource& source) {
    std::map<std::pair<int, std::int64_t>, Owner> rank_of;
    std::map<std::int64_t, std::pair<int, int>> of_process;  // the number of its ranks, and the last one's
    for (const schema::RankRow& rank : source.ranks) {
        rank_of[{rank.device, rank.global_pid}] = {rank.rank, 0};
        auto& [count, number] = of_process[rank.global_pid];
        ++count;
        number = rank.rank;
    }
    std::map<std::int64_t, std::size_t> further;  // devices, by process
    source.scan(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        {"start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType", "name"},
        [&](const Statement& r) {
            const std::pair place(narrow(r.integer(2)), r.integer(1));
            auto it = rank_of.find(place);
            if (it == rank_of.end()) {  // another device of a process that is a single rank
                const auto process = of_process.find(place.second);
                if (place.second == 0 || process == of_process.end() || process->second.first != 1) return;
                it = rank_of.emplace(place, Owner{process->second.second, ++further[place.second]}).first;
            }
            const auto kind = r.integer_or(5, schema::kMemKindDevice);
            // Clamped, but still so large that the sink refuses it.
            const std::int64_t bytes =
                std::clamp(r.integer(4), -2 * PendingRows::kLargest, 2 * PendingRows::kLargest);
            source.sink.add(schema::MemoryRow{
                .time = r.integer(0),
                .rank = it->second.rank,
                .address = static_cast<std::uint64_t>(r.integer(3)),
                .bytes = r.integer(6) == 1 ? -bytes : bytes,
                .category = schema::MemoryCategory::other,
                .space = kind == schema::kMemKindPageable ? schema::MemorySpace::host
                         : kind == schema::kMemKindPinned ? schema::MemorySpace::pinned
                                                          : schema::MemorySpace::device,
                .stream = it->second.device > 0 ? stream_of_device(it->second.device, 0) : -1,
                .name = source.id_or_text(r, 7)});
        });
}

}  // namespace

void load_memory(LoadSource& source) {
    load_in_parts(source, "SHARD_MEMORY", load_allocations);
    source.add_rows<schema::SegmentRow>();
    source.add_rows<schema::CounterRow>();
    source.add_rows<schema::SampleRow>();
    // CUDA's allocations, for a program that records no categories. With categories, they would be
    // duplicates.
    if (source.sink.pending().memory.size() == 0) load_cuda_memory(source);
}

}  // namespace shardscope::traces::store
