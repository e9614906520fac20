// See kept_tracks.h.
#include "traces/lanes/kept_tracks.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "traces/lanes/lane.h"
#include "traces/store/beside/kept_trace.h"
#include "traces/store/columns/column.h"
#include "traces/store/columns/column_bound.h"

namespace shardscope::traces::lanes {
namespace {

using store::Column;
using store::ColumnBound;

constexpr const char* kTracks = "tracks";
constexpr const char* kLabels = "tracks.labels";

// What a track is, but for its label and the events of its lanes.
struct TrackFacts {
    std::int64_t group = -1;
    std::int32_t rank = -1, stream = -1, thread = -1;
    std::uint32_t lanes = 0, label_bytes = 0;
    std::uint8_t kind = 0, work = 0, zeros[2] = {};
};
static_assert(sizeof(TrackFacts) == 32);

std::string lane_name(std::size_t track, std::size_t lane, const char* column) {
    return fmt::format("lane.{}.{}.{}", track, lane, column);
}

// The track without its events; false: the facts are not those of a track of this trace.
bool read_facts(const TrackFacts& facts, const store::Trace& trace, Track& track) {
    constexpr auto kKinds = static_cast<int>(Track::Kind::result);  // which is not kept
    if (facts.kind >= kKinds || facts.work >= store::kDeviceKinds || facts.lanes == 0) return false;
    const auto fits = [](std::int32_t index, std::size_t size) {
        return index >= -1 && index < static_cast<std::int64_t>(size);
    };
    track.kind = static_cast<Track::Kind>(facts.kind);
    track.work = static_cast<store::DeviceKind>(facts.work);
    track.rank.value = facts.rank;
    track.stream.value = facts.stream;
    track.thread = facts.thread;
    track.group = facts.group;
    const bool on_thread = track.kind == Track::Kind::thread || track.kind == Track::Kind::marks;
    return fits(facts.rank, trace.ranks.size()) && fits(facts.stream, trace.streams.size()) &&
           fits(facts.thread, trace.threads.size()) && (facts.thread >= 0 || !on_thread) &&
           (facts.stream >= 0 || track.kind != Track::Kind::stream);
}

bool take_all(const store::Trace& trace, const store::ColumnFile& file, std::vector<Track>& into) {
    store::ColumnTaker taker(file);
    Column<TrackFacts> facts;
    Column<char> labels;
    taker.take(kTracks, facts);
    taker.take(kLabels, labels);
    if (facts.empty() || !taker.checked()) return false;
    std::size_t label = 0, lanes = 0;
    for (const TrackFacts& its : facts) {
        const std::size_t number = into.size();
        Track& track = into.emplace_back();
        lanes += its.lanes;
        if (lanes > file.columns() || !read_facts(its, trace, track) ||
            its.label_bytes > labels.size() - label ||
            !file.has(lane_name(number, its.lanes - std::size_t{1}, "row")))
            return false;
        track.label.assign(labels.data() + label, its.label_bytes);
        label += its.label_bytes;
        track.lanes.resize(its.lanes);
        for (std::size_t l = 0; l < track.lanes.size(); ++l) {
            Lane::visit_columns(track.lanes[l], [&](const char* name, auto& column, ColumnBound bound) {
                taker.take(lane_name(number, l, name), column, bound);
            });
        }
    }
    if (!taker.checked()) return false;
    for (Track& track : into) {
        for (Lane& lane : track.lanes) {
            if (!lane.complete(trace)) return false;
        }
    }
    return true;
}

void keep_tracks(const std::vector<Track>& tracks, store::ColumnFileWriter& file) {
    Column<TrackFacts> facts;
    std::vector<char> labels;
    for (const Track& track : tracks) {
        if (track.kind == Track::Kind::result) continue;
        for (std::size_t l = 0; l < track.lanes.size(); ++l) {
            Lane::visit_columns(track.lanes[l], [&](const char* name, const auto& column, ColumnBound) {
                if (!column.empty()) file.add(lane_name(facts.size(), l, name), column);
            });
        }
        facts.push_back({.group = track.group,
                         .rank = track.rank.value,
                         .stream = track.stream.value,
                         .thread = track.thread,
                         .lanes = static_cast<std::uint32_t>(track.lanes.size()),
                         .label_bytes = static_cast<std::uint32_t>(track.label.size()),
                         .kind = static_cast<std::uint8_t>(track.kind),
                         .work = static_cast<std::uint8_t>(track.work)});
        labels.insert(labels.end(), track.label.begin(), track.label.end());
    }
    file.add(kTracks, facts);
    file.add(kLabels, Column<char>(std::move(labels)));
}

}  // namespace

std::int64_t keep_beside(const store::Trace& trace, const std::vector<Track>& tracks,
                         const std::atomic<bool>* cancel) {
    store::ColumnFileWriter file(trace.path, *trace.identity, cancel);
    store::keep_columns(trace, file);
    keep_tracks(tracks, file);
    return file.finish();
}

bool take_tracks(const store::Trace& trace, std::vector<Track>& into) {
    try {
        if (trace.beside != nullptr && take_all(trace, *trace.beside, into)) return true;
    } catch (const std::bad_alloc&) {  // of a file that is not ours, numbers may be anything
    }
    into.clear();
    return false;
}

}  // namespace shardscope::traces::lanes
