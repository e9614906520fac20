// What ran on devices: events, the streams that they ran on, collectives and waiting.
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "traces/store/build_columns.h"

namespace shardscope::traces {

void build_device(const std::vector<PendingDeviceEvent>& rows, const std::vector<std::size_t>& order,
                  const std::vector<StreamRow>& stream_rows, const RankIndex& ranks, Trace& trace) {
    std::map<std::pair<std::uint16_t, int>, std::string> streams;
    for (const StreamRow& s : stream_rows) streams[{ranks.of_number(s.rank), s.stream}] = s.name;
    std::vector<std::uint16_t> rank_of_row(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rank_of_row[i] = ranks.of_device(rows[i].device, rows[i].global_pid, trace);
        streams.try_emplace({rank_of_row[i], rows[i].stream});
    }
    check_size(streams.size(), "streams", trace);
    std::map<std::pair<std::uint16_t, int>, std::uint16_t> stream_index;
    for (auto& [key, name] : streams) {
        stream_index.emplace(key, static_cast<std::uint16_t>(trace.streams.size()));
        trace.streams.push_back({.rank = key.first, .id = key.second, .name = std::move(name)});
    }

    DeviceEvents& d = trace.device;
    for (const std::size_t i : order) {
        const PendingDeviceEvent& e = rows[i];
        d.start.push_back(e.start);
        d.end.push_back(e.end);
        d.correlation.push_back(e.correlation);
        d.bytes.push_back(e.bytes);
        d.name.push_back(e.name);
        d.rank.push_back(rank_of_row[i]);
        d.stream.push_back(stream_index.at({rank_of_row[i], e.stream}));
        d.kind.push_back(e.kind);
        d.copy_kind.push_back(e.copy_kind);
    }
    d.launch.assign(rows.size(), -1);
    d.collective.assign(rows.size(), -1);
    d.range.assign(rows.size(), -1);
    const auto known = [&](auto member) {
        return std::any_of(rows.begin(), rows.end(),
                           [&](const PendingDeviceEvent& e) { return e.*member >= 0; });
    };
    if (known(&PendingDeviceEvent::blocks_per_sm)) {
        for (const std::size_t i : order) d.blocks_per_sm.push_back(rows[i].blocks_per_sm);
    }
    if (known(&PendingDeviceEvent::occupancy)) {
        for (const std::size_t i : order) d.occupancy.push_back(rows[i].occupancy);
    }
}

void build_collectives(const std::vector<CollectiveRow>& rows, const RankIndex& ranks, Trace& trace) {
    if (rows.empty()) return;
    CorrelationIndex events;
    for (std::size_t i = 0; i < trace.device.size(); ++i) events.add(trace.device.correlation[i], 0, i);
    events.sort();

    Collectives& c = trace.collectives;
    for (const CollectiveRow& row : rows) {
        const std::uint16_t rank = ranks.of_number(row.rank);
        const auto index = static_cast<std::int32_t>(c.size());
        const std::int32_t event = events.find(row.correlation, 0, [&](std::int32_t e) {
            const auto i = static_cast<std::size_t>(e);
            return trace.device.rank[i] == rank && trace.device.collective[i] < 0;
        });
        c.correlation.push_back(row.correlation);
        c.bytes.push_back(row.bytes);
        c.padding.push_back(row.padding);
        c.group.push_back(row.group);
        c.sequence.push_back(row.sequence);
        c.group_size.push_back(row.group_size);
        c.unit.push_back(row.unit);
        c.event.push_back(event);
        c.rank.push_back(rank);
        c.operation.push_back(row.operation);
        c.phase.push_back(row.phase);
        if (event < 0) continue;
        const auto i = static_cast<std::size_t>(event);
        trace.device.kind[i] = DeviceKind::communication;
        trace.device.collective[i] = index;
        trace.device.bytes[i] = row.bytes;
    }
}

void build_synchronizations(std::vector<SynchronizationRow>& rows, const RankIndex& ranks,
                            const CorrelationIndex& calls, Trace& trace) {
    std::erase_if(rows, [&](const SynchronizationRow& r) { return !ranks.knows_device(r.device); });
    std::stable_sort(rows.begin(), rows.end(), [](const SynchronizationRow& a, const SynchronizationRow& b) {
        return std::tie(a.start, a.end) < std::tie(b.start, b.end);
    });
    std::map<std::pair<int, int>, std::int32_t> streams;
    for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        streams.emplace(std::pair(trace.streams[i].rank, trace.streams[i].id), static_cast<std::int32_t>(i));
    }
    Synchronizations& s = trace.synchronizations;
    for (const SynchronizationRow& r : rows) {
        const std::uint16_t rank = ranks.of_device(r.device, r.global_pid, trace);
        const auto stream = streams.find({rank, r.stream});
        s.start.push_back(r.start);
        s.end.push_back(r.end);
        s.call.push_back(calls.find(r.correlation, r.global_pid));
        s.stream.push_back(r.stream >= 0 && stream != streams.end() ? stream->second : -1);
        s.rank.push_back(rank);
        s.type.push_back(static_cast<std::uint8_t>(std::clamp(r.sync_type, 0, 255)));
    }
}

}  // namespace shardscope::traces
