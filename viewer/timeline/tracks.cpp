// See tracks.h.
#include "viewer/timeline/tracks.h"

#include <algorithm>

#include <fmt/format.h>

namespace shardscope::viewer {
namespace {

// Puts an event into the first lane from `lowest` on that is free at its start; returns that lane.
int place(Track& track, std::size_t lowest, std::int64_t start, std::int64_t end, SelectedEvent event,
          Paint paint) {
    std::size_t lane = lowest;
    for (;; ++lane) {
        if (track.lanes.size() <= lane) track.lanes.resize(lane + 1);
        if (track.lanes[lane].add(start, end, event, paint)) return static_cast<int>(lane);
    }
}

std::vector<Track> stream_tracks(const traces::Trace& trace) {
    std::vector<Track> tracks(trace.streams.size());
    for (std::size_t s = 0; s < tracks.size(); ++s) {
        const traces::DeviceStream& stream = trace.streams[s];
        tracks[s].kind = Track::Kind::stream;
        tracks[s].rank = stream.rank;
        tracks[s].source = static_cast<int>(s);
        tracks[s].label = stream.name.empty() ? fmt::format("stream {}", stream.id) : stream.name;
    }
    const traces::DeviceEvents& device = trace.device;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.stream[i] >= tracks.size()) continue;
        place(tracks[device.stream[i]], 0, device.start[i], device.end[i],
              {EventKind::device, static_cast<std::int64_t>(i)}, paint_of(device.kind[i]));
    }
    return tracks;
}

std::vector<Track> thread_tracks(const traces::Trace& trace) {
    std::vector<Track> tracks(trace.threads.size());
    for (std::size_t t = 0; t < tracks.size(); ++t) {
        const traces::HostThread& thread = trace.threads[t];
        tracks[t].kind = Track::Kind::thread;
        tracks[t].rank = thread.rank;
        tracks[t].source = static_cast<int>(t);
        tracks[t].label =
            thread.name.empty() ? fmt::format("thread {}", thread.global_tid & 0xFFFFFF) : thread.name;
    }
    const traces::HostRanges& ranges = trace.ranges;
    const traces::RuntimeCalls& calls = trace.runtime;
    std::vector<int> lane_of(ranges.size(), 0);
    const auto below = [&](std::int32_t range) {  // the first lane under a range
        return range < 0 ? std::size_t{0}
                         : static_cast<std::size_t>(lane_of[static_cast<std::size_t>(range)] + 1);
    };
    std::size_t r = 0, c = 0;
    while (r < ranges.size() || c < calls.size()) {
        // A range that starts together with a call is around it.
        if (c == calls.size() || (r < ranges.size() && ranges.start[r] <= calls.start[c])) {
            if (ranges.thread[r] < tracks.size()) {
                const std::size_t lowest = std::max<std::size_t>(ranges.depth[r], below(ranges.parent[r]));
                lane_of[r] =
                    place(tracks[ranges.thread[r]], lowest, ranges.start[r], ranges.end[r],
                          {EventKind::range, static_cast<std::int64_t>(r)}, paint_of(ranges.kind[r]));
            }
            ++r;
        } else {
            if (calls.thread[c] < tracks.size()) {
                place(tracks[calls.thread[c]], below(calls.range[c]), calls.start[c], calls.end[c],
                      {EventKind::runtime, static_cast<std::int64_t>(c)}, static_cast<Paint>(kRuntimePaint));
            }
            ++c;
        }
    }
    return tracks;
}

}  // namespace

Tracks make_tracks(const traces::Trace& trace) {
    Tracks result;
    for (std::vector<Track> part : {stream_tracks(trace), thread_tracks(trace)}) {
        for (Track& track : part) {
            std::erase_if(track.lanes, [](const Lane& lane) { return lane.size() == 0; });
            if (track.lanes.empty()) continue;
            for (Lane& lane : track.lanes) lane.finish();
            result.tracks.push_back(std::move(track));
        }
    }
    std::stable_sort(result.tracks.begin(), result.tracks.end(), [](const Track& a, const Track& b) {
        return static_cast<unsigned>(a.rank) < static_cast<unsigned>(b.rank);  // -1 goes last
    });
    result.has_memory.resize(trace.ranks.size());
    for (std::size_t i = 0; i < trace.memory.size(); ++i) {
        if (trace.memory.space[i] == traces::MemorySpace::device &&
            trace.memory.rank[i] < trace.ranks.size()) {
            result.has_memory[trace.memory.rank[i]] = true;
        }
    }
    return result;
}

std::optional<Place> find_event(const traces::Trace& trace, const Tracks& tracks, SelectedEvent event) {
    if (event.kind == EventKind::none || event.index < 0) return std::nullopt;
    const auto i = static_cast<std::size_t>(event.index);
    const auto kind = event.kind == EventKind::device ? Track::Kind::stream : Track::Kind::thread;
    int source = 0;
    switch (event.kind) {
        case EventKind::device:
            source = trace.device.stream[i];
            break;
        case EventKind::range:
            source = trace.ranges.thread[i];
            break;
        default:
            source = trace.runtime.thread[i];
            break;
    }
    const std::int64_t start = time_of(trace, event).start;
    for (std::size_t t = 0; t < tracks.tracks.size(); ++t) {
        const Track& track = tracks.tracks[t];
        if (track.kind != kind || track.source != source) continue;
        for (std::size_t l = 0; l < track.lanes.size(); ++l) {
            const Lane& lane = track.lanes[l];
            for (std::size_t k = lane.first_starting_from(0, start);
                 k < lane.size() && lane.start(k) == start; ++k) {
                if (lane.event(k) == event) return Place{static_cast<int>(t), static_cast<int>(l), k};
            }
        }
    }
    return std::nullopt;
}

std::vector<std::int64_t> launched_by(const traces::Trace& trace, std::int64_t call) {
    std::vector<std::int64_t> events;
    for (std::size_t i = 0; i < trace.device.size(); ++i) {
        if (trace.device.launch[i] == call) events.push_back(static_cast<std::int64_t>(i));
    }
    return events;
}

EventTime time_of(const traces::Trace& trace, SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    switch (event.kind) {
        case EventKind::device:
            return {trace.device.start[i], trace.device.end[i]};
        case EventKind::range:
            return {trace.ranges.start[i], trace.ranges.end[i]};
        case EventKind::runtime:
            return {trace.runtime.start[i], trace.runtime.end[i]};
        case EventKind::none:
            break;
    }
    return {};
}

}  // namespace shardscope::viewer
