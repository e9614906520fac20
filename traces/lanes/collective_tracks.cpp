// See tracks.h.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "traces/analysis/communication/matching.h"
#include "traces/lanes/tracks.h"
#include "traces/schema/sort_rows.h"

namespace shardscope::traces::lanes {
namespace {

struct Joined {
    std::int64_t first_arrival = 0, last_arrival = 0, end = 0;
    std::int64_t group = -1;  // -1: not recorded
    store::EventRef last;     // of the rank that arrived last
};

std::vector<Joined> join(const store::Trace& trace) {
    const analysis::Communications all = analysis::match_communications(trace);
    const store::DeviceEvents& device = trace.device;
    std::vector<Joined> joined;
    for (const analysis::CollectiveMatch& match : all.matches) {
        Joined one;
        int parts = 0;
        for (const analysis::Communication& part : all.of(match)) {
            if (part.event < 0) continue;
            const auto e = static_cast<std::size_t>(part.event);
            if (parts == 0 || device.start[e] < one.first_arrival) one.first_arrival = device.start[e];
            if (parts == 0 || device.start[e] > one.last_arrival) {
                one.last_arrival = device.start[e];
                one.last = {store::EventKind::device, part.event};
            }
            one.end = std::max(parts == 0 ? device.end[e] : one.end, device.end[e]);
            if (part.row >= 0) one.group = trace.collectives.group[static_cast<std::size_t>(part.row)];
            ++parts;
        }
        if (parts >= 2) joined.push_back(one);
    }
    schema::sort_rows(joined, [](const Joined& a, const Joined& b) {
        return a.first_arrival != b.first_arrival ? a.first_arrival < b.first_arrival : a.end > b.end;
    });
    return joined;
}

}  // namespace

std::vector<Track> collective_tracks(const store::Trace& trace) {
    std::map<std::int64_t, Track> by_group;
    for (const Joined& one : join(trace)) {
        Track& track = by_group[one.group];
        std::size_t lane = 0;
        while (lane < track.lanes.size() && track.lanes[lane].last_end() > one.first_arrival) ++lane;
        if (lane == track.lanes.size()) track.lanes.emplace_back();
        // If a rank ended before the last one arrived (a broadcast's root), there is no transfer.
        const std::int64_t arrived = std::min(one.last_arrival, one.end);
        if (arrived > one.first_arrival)
            track.lanes[lane].add(one.first_arrival, arrived, one.last, kArrivalPaint);
        track.lanes[lane].add(arrived, one.end, one.last, kTransferPaint);
    }
    std::vector<Track> tracks;
    for (auto& [group, track] : by_group) {
        track.kind = Track::Kind::collectives;
        track.group = group;
        track.label = group < 0 ? std::string("collectives") : fmt::format("group {}", group);
        tracks.push_back(std::move(track));
    }
    return tracks;
}

}  // namespace shardscope::traces::lanes
