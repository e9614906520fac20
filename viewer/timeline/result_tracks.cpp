// See tracks.h.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "viewer/model/result_rows.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {
namespace {

constexpr std::size_t kMostLanes = 32;  // spans that overlap more often are not shown

Paint paint_of_event(const traces::store::Trace& trace, model::SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    if (event.kind == model::EventKind::device) return paint_of(trace.device.kind[i]);
    if (event.kind == model::EventKind::range) return paint_of(trace.ranges.kind[i]);
    return kNoHue;
}

}  // namespace

std::vector<Track> result_tracks(const traces::store::Trace& trace, const model::ResultRows& result) {
    std::map<int, std::vector<const model::ResultSpan*>> by_rank;  // -1: no rank
    for (const model::ResultSpan& span : result.spans) by_rank[span.rank.value_or(-1)].push_back(&span);
    std::vector<Track> tracks;
    for (auto& [rank, spans] : by_rank) {
        // Of two that begin together the longer one is above.
        traces::schema::sort_rows(spans, [](const model::ResultSpan* a, const model::ResultSpan* b) {
            return a->from != b->from ? a->from < b->from : a->to > b->to;
        });
        Track& track = tracks.emplace_back();
        track.kind = Track::Kind::result;
        std::size_t shown = 0;
        for (const model::ResultSpan* span : spans) {
            std::size_t lane = 0;
            while (lane < track.lanes.size() && track.lanes[lane].last_end() > span->from) ++lane;
            if (lane == kMostLanes) continue;
            if (lane == track.lanes.size()) {
                track.lanes.emplace_back();
                track.names.emplace_back();
            }
            if (!track.lanes[lane].add(span->from, span->to, span->event, paint_of_event(trace, span->event)))
                continue;
            track.names[lane].push_back(span->name);
            ++shown;
        }
        track.label = rank < 0 ? std::string("result") : fmt::format("rank {}", rank);
        if (shown < spans.size()) track.label += fmt::format(", {} of {} rows", shown, spans.size());
        for (Lane& lane : track.lanes) lane.finish();
    }
    return tracks;
}

Tracks make_tracks(const traces::store::Trace& trace, const model::ResultRows* result) {
    Tracks tracks = traces::lanes::make_tracks(trace);
    if (result == nullptr) return tracks;
    for (Track& track : result_tracks(trace, *result)) tracks.tracks.push_back(std::move(track));
    tracks.result = result->number;
    return tracks;
}

}  // namespace shardscope::viewer::timeline
