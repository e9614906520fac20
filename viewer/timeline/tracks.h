// The lanes of a whole trace, grouped as they are shown: per rank its streams, then its host threads, whose
// ranges and runtime calls nest downwards. Built once for a trace, off the frame thread; read-only then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/store/trace.h"
#include "viewer/timeline/lane.h"

namespace shardscope::viewer {

struct Track {
    enum class Kind { stream, thread };
    Kind kind = Kind::stream;
    int rank = -1;   // index into Trace::ranks, -1 a thread of no rank
    int source = 0;  // index into Trace::streams or Trace::threads
    std::string label;
    std::vector<Lane> lanes;  // top to bottom; at least one, none empty
};

struct Tracks {
    std::vector<Track>
        tracks;  // by rank (those of none last), streams before threads; empty ones are left out
    std::vector<bool> has_memory;  // by index into Trace::ranks: allocations of device memory were recorded
};

Tracks make_tracks(const traces::Trace& trace);

// Where an event is; nullopt where the trace does not show it.
struct Place {
    int track = 0, lane = 0;
    std::size_t item = 0;
};
std::optional<Place> find_event(const traces::Trace& trace, const Tracks& tracks, SelectedEvent event);

// Device events that a runtime call launched, by the call's index.
std::vector<std::int64_t> launched_by(const traces::Trace& trace, std::int64_t call);

struct EventTime {
    std::int64_t start = 0, end = 0;
};
EventTime time_of(const traces::Trace& trace, SelectedEvent event);

}  // namespace shardscope::viewer
