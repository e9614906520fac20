// Device activity: events, the streams that they ran on, collectives and synchronization.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "traces/schema/sort_rows.h"
#include "traces/store/columns/build_columns.h"
#include "traces/store/columns/row_order.h"

namespace shardscope::traces::store {

namespace {

// The values that all events of a lane share.
struct Lane {
    RankIndex rank;
    std::uint16_t stream = 0;
    CorrelationIndex::Place calls;
};

// Fills Trace::streams.
std::vector<Lane> lanes_of(const PendingDevice& rows, const std::vector<schema::StreamRow>& stream_rows,
                           const RankLookup& ranks, const CorrelationIndex& calls, Trace& trace) {
    std::map<std::pair<RankIndex, int>, std::string> streams;
    for (const schema::StreamRow& s : stream_rows) streams[{ranks.of_number(s.rank), s.stream}] = s.name;
    const auto stream_of = [&](const SlotKey& key) {
        return ranks.stream_of(PendingDevice::device_of(key), key.a, PendingDevice::stream_of(key));
    };
    std::vector<Lane> lanes;
    for (const SlotKey& key : rows.lanes.keys()) {
        const RankIndex rank = ranks.of_device(PendingDevice::device_of(key), key.a);
        lanes.push_back({.rank = rank, .calls = calls.place(key.a)});
        streams.try_emplace({rank, stream_of(key)});
    }
    check_size(streams.size(), "streams", trace);
    std::map<std::pair<RankIndex, int>, std::uint16_t> index;
    for (auto& [key, name] : streams) {
        index.emplace(key, static_cast<std::uint16_t>(trace.streams.size()));
        trace.streams.push_back({.rank = key.first, .id = key.second, .name = std::move(name)});
    }
    for (std::size_t l = 0; l < lanes.size(); ++l) {
        lanes[l].stream = index.at({lanes[l].rank, stream_of(rows.lanes[l])});
    }
    return lanes;
}

// The collectives and the device events of a correlation id that has no event named like a communication
// kernel.
struct UntiedCollectives {
    std::vector<std::size_t> rows, events;
};

std::vector<UntiedCollectives> untied_collectives(const Trace& trace) {
    const Collectives& c = trace.collectives;
    const DeviceEvents& d = trace.device;
    std::map<std::pair<std::uint16_t, std::int64_t>, UntiedCollectives> by_id;
    for (std::size_t i = 0; i < c.size(); ++i) {
        if (c.event[i] < 0 && c.correlation[i] != 0) by_id[{c.rank[i], c.correlation[i]}].rows.push_back(i);
    }
    std::vector<UntiedCollectives> found;
    if (by_id.empty()) return found;
    for (std::size_t i = 0; i < c.size(); ++i) {
        if (c.event[i] >= 0) by_id.erase({c.rank[i], c.correlation[i]});
    }
    for (std::size_t e = 0; e < d.size(); ++e) {
        const auto it = by_id.find({d.rank[e], d.correlation[e]});
        if (it != by_id.end()) it->second.events.push_back(e);
    }
    found.reserve(by_id.size());
    for (auto& [id, untied] : by_id) found.push_back(std::move(untied));
    return found;
}

}  // namespace

void build_device(PendingDevice& rows, const std::vector<schema::StreamRow>& stream_rows,
                  const RankLookup& ranks, const CorrelationIndex& calls, Trace& trace) {
    const std::size_t size = rows.size();
    fill_rare(rows.external_id, size, std::int64_t{0});
    fill_rare(rows.blocks_per_sm, size, -1.0F);
    fill_rare(rows.occupancy, size, -1.0F);
    const auto order = row_order(size, [&](std::size_t a, std::size_t b) {
        return rows.start[a] != rows.start[b] ? rows.start[a] < rows.start[b] : rows.end[a] < rows.end[b];
    });
    DeviceEvents& d = trace.device;
    const auto take = [&](auto& from, auto& to) { reorder_into(from, order, to); };
    take(rows.start, d.start);
    take(rows.end, d.end);
    take(rows.correlation, d.correlation);
    take(rows.bytes, d.bytes);
    take(rows.name, d.name);
    take(rows.kind, d.kind);
    take(rows.copy_kind, d.copy_kind);
    take(rows.blocks_per_sm, d.blocks_per_sm);
    take(rows.occupancy, d.occupancy);
    reorder(rows.lane, order);
    reorder(rows.external_id, order);

    const std::vector<Lane> lanes = lanes_of(rows, stream_rows, ranks, calls, trace);
    d.rank.resize(size);
    d.stream.resize(size);
    d.launch.reset(size);
    for (std::size_t i = 0; i < size; ++i) {
        const Lane& lane = lanes[rows.lane[i]];
        d.rank[i] = lane.rank.column();
        d.stream[i] = lane.stream;
        d.launch.set(i, calls.find(d.correlation[i], lane.calls));
    }
    d.collective.reset(size);
    d.range.reset(size);
}

void build_collectives(const std::vector<schema::CollectiveRow>& rows, const RankLookup& ranks,
                       Trace& trace) {
    if (rows.empty()) return;
    Collectives& c = trace.collectives;
    std::vector<std::uint32_t> owner;
    for (const schema::CollectiveRow& row : rows) {
        const std::uint16_t rank = ranks.of_number(row.rank).column();
        owner.push_back(rank);
        c.correlation.push_back(row.correlation);
        c.bytes.push_back(row.bytes);
        c.padding.push_back(row.padding);
        c.group.push_back(row.group);
        c.sequence.push_back(row.sequence);
        c.group_size.push_back(row.group_size);
        c.unit.push_back(row.unit);
        c.rank.push_back(rank);
        c.operation.push_back(row.operation);
        c.phase.push_back(row.phase);
    }
    c.event.assign(rows.size(), -1);
    // Separates ids by rank, as if by process; numbers start at 1 because process 0 means "unknown".
    std::vector<std::int64_t> number_of_rank(trace.ranks.size());
    for (std::size_t r = 0; r < number_of_rank.size(); ++r)
        number_of_rank[r] = static_cast<std::int64_t>(r) + 1;
    CorrelationIndex of_rank(c.correlation, owner, number_of_rank);
    std::vector<CorrelationIndex::Place> places;
    places.reserve(number_of_rank.size());
    for (const std::int64_t number : number_of_rank) places.push_back(of_rank.place(number));
    DeviceEvents& d = trace.device;
    const auto tie = [&](std::size_t event, std::size_t row) {
        c.event[row] = static_cast<std::int32_t>(event);
        d.kind[event] = DeviceKind::communication;
        d.collective.set(event, static_cast<std::int32_t>(row));
        d.bytes[event] = c.bytes[row];
    };
    // All work of a launched graph has one id: its events named like communication kernels belong to its
    // collectives in order.
    for (std::size_t e = 0; e < d.size(); ++e) {
        if (d.kind[e] != DeviceKind::communication) continue;
        const std::int32_t row = of_rank.take(d.correlation[e], places[d.rank[e]]);
        if (row >= 0) tie(e, static_cast<std::size_t>(row));
    }
    for (const UntiedCollectives& untied : untied_collectives(trace)) {
        if (untied.events.size() > untied.rows.size()) continue;  // ambiguous
        for (std::size_t k = 0; k < untied.events.size(); ++k) tie(untied.events[k], untied.rows[k]);
    }
}

void build_synchronizations(std::vector<schema::SynchronizationRow>& rows, const RankLookup& ranks,
                            const CorrelationIndex& calls, Trace& trace) {
    std::erase_if(rows, [&](const schema::SynchronizationRow& r) {
        return !ranks.knows_device(r.device, r.global_pid);
    });
    sort_rows(rows, [](const schema::SynchronizationRow& a, const schema::SynchronizationRow& b) {
        return std::tie(a.start, a.end) < std::tie(b.start, b.end);
    });
    std::map<std::pair<RankIndex, int>, std::int32_t> streams;
    for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        streams.emplace(std::pair(trace.streams[i].rank, trace.streams[i].id), static_cast<std::int32_t>(i));
    }
    Synchronizations& s = trace.synchronizations;
    for (const schema::SynchronizationRow& r : rows) {
        const RankIndex rank = ranks.of_device(r.device, r.global_pid);
        const auto stream = streams.find({rank, ranks.stream_of(r.device, r.global_pid, r.stream)});
        s.start.push_back(r.start);
        s.end.push_back(r.end);
        s.call.push_back(calls.find(r.correlation, calls.place(r.global_pid)));
        s.stream.push_back(r.stream >= 0 && stream != streams.end() ? stream->second : -1);
        s.rank.push_back(rank.column());
        s.type.push_back(static_cast<std::uint8_t>(std::clamp(r.sync_type, 0, 255)));
    }
}

}  // namespace shardscope::traces::store
