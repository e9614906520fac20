// See tracks.h.
#include "traces/lanes/tracks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/core.h>

#include "traces/lanes/kept_tracks.h"
#include "traces/lanes/lane.h"
#include "traces/lanes/thread_titles.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/on_cores.h"

namespace shardscope::traces::lanes {
namespace {

// --- The lane in its track for each event, determined before the lanes are filled, so that their memory can
// be reserved exactly. Pure data, any thread. Times in nanoseconds.

// The lanes of one track. Events must be placed in order of start.
class LanePlan {
  public:
    // The first lane from `lowest` on that is free at `start`.
    std::uint32_t place(std::size_t lowest, std::int64_t start, std::int64_t end) {
        if (free_from_.size() <= lowest) grow(lowest + 1);
        std::size_t lane = lowest;
        while (lane < free_from_.size() && free_from_[lane] > start) ++lane;
        if (lane == free_from_.size()) grow(lane + 1);
        free_from_[lane] = end > start ? end : start;
        ++events_[lane];
        return static_cast<std::uint32_t>(lane);
    }
    std::vector<Lane> empty_lanes() const {
        std::vector<Lane> lanes(events_.size());
        for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i].reserve(events_[i]);
        return lanes;
    }

  private:
    void grow(std::size_t lanes) {
        free_from_.resize(lanes, std::numeric_limits<std::int64_t>::min());
        events_.resize(lanes, 0);
    }
    std::vector<std::int64_t> free_from_;
    std::vector<std::size_t> events_;
};

std::int64_t row(std::size_t i) {
    return static_cast<std::int64_t>(i);
}

// The device kind with the most time in a stream.
store::DeviceKind work_of(const Track& track) {
    PaintTimes times{};
    for (const Lane& lane : track.lanes) lane.paints().add_times(lane, 0, lane.size(), times);
    const auto most = std::max_element(times.begin(), times.begin() + store::kDeviceKinds);
    return static_cast<store::DeviceKind>(most - times.begin());
}

std::vector<Track> stream_tracks(const store::Trace& trace) {
    const store::DeviceEvents& device = trace.device;
    std::vector<LanePlan> plans(trace.streams.size());
    std::vector<std::uint32_t> lane_of(device.size());
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.stream[i] < plans.size())
            lane_of[i] = plans[device.stream[i]].place(0, device.start[i], device.end[i]);
    }
    std::vector<Track> tracks(trace.streams.size());
    for (std::size_t s = 0; s < tracks.size(); ++s) {
        const store::DeviceStream& stream = trace.streams[s];
        tracks[s].kind = Track::Kind::stream;
        tracks[s].rank = stream.rank;
        tracks[s].stream = store::StreamIndex(s);
        tracks[s].label = stream.name.empty() ? fmt::format("stream {}", stream.id) : stream.name;
        tracks[s].lanes = plans[s].empty_lanes();
    }
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.stream[i] >= tracks.size()) continue;
        tracks[device.stream[i]].lanes[lane_of[i]].add(
            device.start[i], device.end[i], {store::EventKind::device, row(i)}, paint_of(device.kind[i]));
    }
    return tracks;
}

// Visits ranges and calls of all threads by start; of a range and a call that start together, the range comes
// first, because it encloses the call.
template <typename OnRange, typename OnCall>
void in_order(const store::HostRanges& ranges, const store::RuntimeCalls& calls, OnRange on_range,
              OnCall on_call) {
    std::size_t r = 0, c = 0;
    while (r < ranges.size() || c < calls.size()) {
        if (c == calls.size() || (r < ranges.size() && ranges.start[r] <= calls.start[c])) {
            on_range(r++);
        } else {
            on_call(c++);
        }
    }
}

std::vector<Track> thread_tracks(const store::Trace& trace, const std::vector<std::string>& titles) {
    const store::HostRanges& ranges = trace.ranges;
    const store::RuntimeCalls& calls = trace.runtime;
    std::vector<LanePlan> plans(trace.threads.size());
    std::vector<std::uint32_t> lane_of(ranges.size()), lane_of_call(calls.size());
    const auto below = [&](std::int32_t range) {  // the first lane under a range
        return range < 0 ? std::size_t{0} : std::size_t{lane_of[static_cast<std::size_t>(range)]} + 1;
    };
    in_order(
        ranges, calls,
        [&](std::size_t r) {
            if (ranges.thread[r] >= plans.size()) return;
            const std::size_t lowest = std::max<std::size_t>(ranges.depth[r], below(ranges.parent[r]));
            lane_of[r] = plans[ranges.thread[r]].place(lowest, ranges.start[r], ranges.end[r]);
        },
        [&](std::size_t c) {
            if (calls.thread[c] >= plans.size()) return;
            lane_of_call[c] =
                plans[calls.thread[c]].place(below(calls.range[c]), calls.start[c], calls.end[c]);
        });
    std::vector<Track> tracks(trace.threads.size());
    for (std::size_t t = 0; t < tracks.size(); ++t) {
        const store::HostThread& thread = trace.threads[t];
        tracks[t].kind = Track::Kind::thread;
        tracks[t].rank = thread.rank;
        tracks[t].thread = static_cast<int>(t);
        tracks[t].label = titles[t];
        tracks[t].lanes = plans[t].empty_lanes();
    }
    // Each of the processors fills the lanes of some threads.
    const std::size_t shares = std::min(tracks.size(), store::cores_for(ranges.size() + calls.size()));
    store::on_cores(shares, shares, [&](std::size_t share) {
        const auto is_here = [&](std::size_t thread) {
            return thread < tracks.size() && thread % shares == share;
        };
        in_order(
            ranges, calls,
            [&](std::size_t r) {
                if (!is_here(ranges.thread[r])) return;
                tracks[ranges.thread[r]].lanes[lane_of[r]].add(ranges.start[r], ranges.end[r],
                                                               {store::EventKind::range, row(r)},
                                                               paint_of(ranges.kind[r]));
            },
            [&](std::size_t c) {
                if (!is_here(calls.thread[c])) return;
                tracks[calls.thread[c]].lanes[lane_of_call[c]].add(
                    calls.start[c], calls.end[c], {store::EventKind::runtime, row(c)}, kRuntimePaint);
            });
    });
    return tracks;
}

void add_to_lanes(Track& track, std::int64_t start, std::int64_t end, store::EventRef event, Paint paint) {
    for (Lane& lane : track.lanes) {
        if (lane.add(start, end, event, paint)) return;
    }
    track.lanes.emplace_back().add(start, end, event, paint);
}

std::vector<Track> wait_tracks(const store::Trace& trace) {
    const store::Synchronizations& waits = trace.synchronizations;
    std::vector<Track> tracks(trace.ranks.size());
    for (std::size_t i = 0; i < waits.size(); ++i) {
        if (waits.rank[i] >= tracks.size()) continue;
        Track& track = tracks[waits.rank[i]];
        add_to_lanes(track, waits.start[i], waits.end[i], {store::EventKind::wait, row(i)}, kWaitPaint);
    }
    for (std::size_t r = 0; r < tracks.size(); ++r) {
        tracks[r].kind = Track::Kind::waits;
        tracks[r].rank = store::RankIndex(r);
        tracks[r].label = "waiting";
    }
    return tracks;
}

std::vector<Track> mark_tracks(const store::Trace& trace, const std::vector<std::string>& titles) {
    const store::Marks& marks = trace.marks;
    std::vector<Track> tracks(trace.threads.size());
    for (std::size_t i = 0; i < marks.size(); ++i) {
        if (marks.thread[i] >= tracks.size()) continue;
        add_to_lanes(tracks[marks.thread[i]], marks.time[i], marks.time[i], {store::EventKind::mark, row(i)},
                     kMarkPaint);
    }
    for (std::size_t t = 0; t < tracks.size(); ++t) {
        tracks[t].kind = Track::Kind::marks;
        tracks[t].rank = trace.threads[t].rank;
        tracks[t].thread = static_cast<int>(t);
        tracks[t].label = "marks of " + titles[t];
    }
    return tracks;
}

CurveIndex<double> index_of(const std::vector<std::pair<std::int64_t, double>>& points) {
    return {points.size(), [&](std::size_t i) { return points[i].first; },
            [&](std::size_t i) { return points[i].second; }};
}

// Curves by (rank, host, device, name), from values in order of time.
class CounterTracks {
  public:
    explicit CounterTracks(const store::Trace& trace) : trace_(trace) {}

    void add(std::int64_t time, double value, const CounterTrack& of) {
        if (std::isnan(value)) return;
        const store::RankIndex rank = of.rank.at() < trace_.ranks.size() ? of.rank : store::RankIndex();
        const auto [it, is_new] = known_.try_emplace({rank, of.host, of.device, of.name}, tracks_.size());
        if (is_new) {
            CounterTrack& made = tracks_.emplace_back();
            made.rank = rank;
            made.host = of.host;
            made.device = of.device;
            made.name = of.name;
            made.metric = of.metric;
            made.least = made.most = value;
        }
        CounterTrack& track = tracks_[it->second];
        track.points.emplace_back(time, value);
        track.least = std::min(track.least, value);
        track.most = std::max(track.most, value);
    }

    std::vector<CounterTrack> take() {
        for (CounterTrack& track : tracks_) {
            track.points.shrink_to_fit();
            track.index = index_of(track.points);
        }
        const auto key = [this](const CounterTrack& track) {
            return std::tuple(track.rank, std::string_view(trace_.strings[track.host]), track.device);
        };
        schema::sort_rows(tracks_,
                          [&key](const CounterTrack& a, const CounterTrack& b) { return key(a) < key(b); });
        return std::move(tracks_);
    }

  private:
    const store::Trace& trace_;
    std::map<std::tuple<store::RankIndex, schema::StringId, int, schema::StringId>, std::size_t> known_;
    std::vector<CounterTrack> tracks_;
};

std::vector<CounterTrack> counter_tracks(const store::Trace& trace) {
    const store::Counters& all = trace.counters;
    CounterTracks tracks(trace);
    for (std::size_t i = 0; i < all.size(); ++i) {
        CounterTrack of;
        of.rank = store::RankIndex(all.rank[i]);
        of.host = all.host[i];
        of.device = all.device[i];
        of.name = all.name[i];
        tracks.add(all.time[i], all.value[i], of);
    }
    return tracks.take();
}

std::vector<CounterTrack> metric_tracks(const store::Trace& trace) {
    std::vector<const schema::MetricRow*> rows;
    for (const schema::MetricRow& row : trace.metrics) rows.push_back(&row);
    schema::sort_rows(rows, [](const auto* a, const auto* b) { return a->time < b->time; });
    CounterTracks tracks(trace);
    for (const schema::MetricRow* row : rows) {
        CounterTrack of;
        of.rank = trace.rank_of_number(row->rank);
        of.name = row->name;
        of.metric = true;
        tracks.add(row->time, row->value, of);
    }
    return tracks.take();
}

// Merges intervals that are added in order of start.
class Union {
  public:
    void put(std::int64_t start, std::int64_t end) {
        if (any_ && start <= to_) {
            to_ = std::max(to_, end);
            return;
        }
        flush();
        any_ = true;
        from_ = start;
        to_ = std::max(start, end);
    }
    Lane take() {
        flush();
        lane_.finish();
        return std::move(lane_);
    }

  private:
    void flush() {
        if (any_) lane_.add(from_, to_, {}, 0);
        any_ = false;
    }
    Lane lane_;
    std::int64_t from_ = 0, to_ = 0;
    bool any_ = false;
};

// Sorts the events of all lanes: for tracks with few events.
Lane union_of_lanes(const std::vector<const Track*>& tracks) {
    std::vector<store::EventTime> times;
    for (const Track* track : tracks) {
        for (const Lane& lane : track->lanes) {
            for (std::size_t i = 0; i < lane.size(); ++i) times.push_back({lane.start(i), lane.end(i)});
        }
    }
    std::sort(times.begin(), times.end(),
              [](const store::EventTime& a, const store::EventTime& b) { return a.start < b.start; });
    Union all;
    for (const store::EventTime& time : times) all.put(time.start, time.end);
    return all.take();
}

// The tracks of a trace's events.
std::vector<Track> tracks_of_events(const store::Trace& trace) {
    std::vector<Track> tracks;
    const auto take = [&](std::vector<Track> part) {
        for (Track& track : part) {
            std::erase_if(track.lanes, [](const Lane& lane) { return lane.size() == 0; });
            if (track.lanes.empty()) continue;
            tracks.push_back(std::move(track));
        }
    };
    const std::vector<std::string> titles = thread_titles(trace);
    take(collective_tracks(trace));
    take(stream_tracks(trace));
    take(thread_tracks(trace, titles));
    take(wait_tracks(trace));
    take(mark_tracks(trace, titles));
    store::on_cores(store::cores_for(trace.events()), tracks.size(), [&](std::size_t t) {
        for (Lane& lane : tracks[t].lanes) lane.finish();
        if (tracks[t].kind == Track::Kind::stream) tracks[t].work = work_of(tracks[t]);
    });
    schema::sort_rows(tracks, [](const Track& a, const Track& b) {
        const bool a_joined = a.kind == Track::Kind::collectives,
                   b_joined = b.kind == Track::Kind::collectives;
        if (a_joined || b_joined) return a_joined && !b_joined;
        return a.rank < b.rank;  // those of no rank last
    });
    return tracks;
}

}  // namespace

Tracks make_tracks(const store::Trace& trace) {
    Tracks result;
    if (!take_tracks(trace, result.tracks)) result.tracks = tracks_of_events(trace);
    result.counters = counter_tracks(trace);
    result.has_memory.resize(trace.ranks.size());
    for (std::size_t i = 0; i < trace.memory.size(); ++i) {
        if (trace.memory.space[i] == schema::MemorySpace::device &&
            trace.memory.rank[i] < trace.ranks.size()) {
            result.has_memory[trace.memory.rank[i]] = true;
        }
    }
    if (result.empty()) result.counters = metric_tracks(trace);
    return result;
}

bool Tracks::empty() const {
    return tracks.empty() && counters.empty() &&
           std::find(has_memory.begin(), has_memory.end(), true) == has_memory.end();
}

std::size_t Tracks::memory() const {
    std::size_t bytes = 0;
    for (const Track& track : tracks) {
        for (const Lane& lane : track.lanes) bytes += sizeof(Lane) + lane.memory();
    }
    for (const CounterTrack& counter : counters)
        bytes += counter.points.capacity() * sizeof(counter.points[0]) + counter.index.memory();
    return bytes;
}

Lane busy_union(const store::Trace& trace, const std::vector<const Track*>& tracks) {
    if (std::all_of(tracks.begin(), tracks.end(), [](const Track* t) {
            return t->kind != Track::Kind::stream && t->kind != Track::Kind::thread;
        }))
        return union_of_lanes(tracks);
    const bool on_device = std::any_of(tracks.begin(), tracks.end(),
                                       [](const Track* t) { return t->kind == Track::Kind::stream; });
    std::vector<bool> counts(on_device ? trace.streams.size() : trace.threads.size());
    for (const Track* track : tracks) {
        if (track->kind == (on_device ? Track::Kind::stream : Track::Kind::thread))
            counts[on_device ? track->stream.at() : static_cast<std::size_t>(track->thread)] = true;
    }
    Union all;
    const store::DeviceEvents& device = trace.device;
    for (std::size_t i = 0; on_device && i < device.size(); ++i) {
        if (device.stream[i] < counts.size() && counts[device.stream[i]])
            all.put(device.start[i], device.end[i]);
    }
    if (!on_device) {
        // Ranges inside another range add nothing.
        const store::HostRanges& ranges = trace.ranges;
        const store::RuntimeCalls& calls = trace.runtime;
        in_order(
            ranges, calls,
            [&](std::size_t r) {
                if (ranges.parent[r] < 0 && ranges.thread[r] < counts.size() && counts[ranges.thread[r]])
                    all.put(ranges.start[r], ranges.end[r]);
            },
            [&](std::size_t c) {
                if (calls.thread[c] < counts.size() && counts[calls.thread[c]])
                    all.put(calls.start[c], calls.end[c]);
            });
    }
    return all.take();
}

std::optional<EventPlace> find_event(const store::Trace& trace, const Tracks& tracks, store::EventRef event) {
    if (event.kind == store::EventKind::none || event.index < 0) return std::nullopt;
    const auto i = static_cast<std::size_t>(event.index);
    Track::Kind kind = Track::Kind::thread;
    store::RankIndex rank;
    store::StreamIndex stream;
    int thread = -1;
    switch (event.kind) {
        case store::EventKind::device:
            kind = Track::Kind::stream;
            stream = store::StreamIndex(trace.device.stream[i]);
            break;
        case store::EventKind::range:
            thread = trace.ranges.thread[i];
            break;
        case store::EventKind::runtime:
            thread = trace.runtime.thread[i];
            break;
        case store::EventKind::wait:
            kind = Track::Kind::waits;
            rank = store::RankIndex(trace.synchronizations.rank[i]);
            break;
        case store::EventKind::mark:
            kind = Track::Kind::marks;
            thread = trace.marks.thread[i];
            break;
        case store::EventKind::none:
            return std::nullopt;
    }
    const std::int64_t start = time_of(trace, event).start;
    for (std::size_t t = 0; t < tracks.tracks.size(); ++t) {
        const Track& track = tracks.tracks[t];
        if (track.kind != kind || track.stream != stream || track.thread != thread) continue;
        if (rank.known() && track.rank != rank) continue;
        for (std::size_t l = 0; l < track.lanes.size(); ++l) {
            const Lane& lane = track.lanes[l];
            for (std::size_t k = lane.first_starting_from(0, start);
                 k < lane.size() && lane.start(k) == start; ++k) {
                if (lane.event(k) == event) return EventPlace{static_cast<int>(t), static_cast<int>(l), k};
            }
        }
    }
    return std::nullopt;
}

std::vector<std::int64_t> launched_by(const store::Trace& trace, std::int64_t call) {
    std::vector<std::int64_t> events;
    for (std::size_t i = 0; i < trace.device.size(); ++i) {
        if (trace.device.launch[i] == call) events.push_back(row(i));
    }
    return events;
}

}  // namespace shardscope::traces::lanes
