// The lanes of a whole trace, grouped as they are shown: collectives joined across ranks, then per rank its
// streams, its host threads, whose ranges and runtime calls nest downwards, its waiting and its marks. The
// viewer's timeline and the HTML timeline have the same. Pure; any thread. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/lanes/curve_index.h"
#include "traces/lanes/lane.h"
#include "traces/store/columns/event_columns.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::lanes {

struct Track {
    // collectives: of one process group, each as a bar from the first rank's arrival to the last one's,
    // painted kArrivalPaint, and a bar from there to the end, kTransferPaint; its events are those of the
    // rank that arrived last. waits: synchronisation, as long as the host waits. marks: instants. result: of
    // a query, the spans of one rank; its bars need not be events.
    enum class Kind : std::uint8_t { collectives, stream, thread, waits, marks, result };
    Kind kind = Kind::stream;
    store::RankIndex rank;  // none: no rank, or several
    store::StreamIndex stream;
    int thread = -1;          // index into Trace::threads, of a thread and its marks
    std::int64_t group = -1;  // collectives: the process group, -1 unknown
    store::DeviceKind work = store::DeviceKind::kernel;  // streams: the kind with the most busy time
    std::string label;
    std::vector<Lane> lanes;                      // top to bottom; at least one, none empty
    std::vector<std::vector<std::string>> names;  // results: of each bar, by lane; empty: its event's
    std::string_view name(int lane, std::size_t item) const {
        return names.empty() ? std::string_view() : names[static_cast<std::size_t>(lane)][item];
    }
};

// A counter of a rank, of a host, or of a GPU or an adapter of either, over time; or a metric of training.
struct CounterTrack {
    store::RankIndex rank;                            // none: of no rank
    schema::StringId host = schema::StringId::empty;  // empty: the rank's, or unknown
    int device = -1;                                  // the GPU's or adapter's number on its host
    schema::StringId name = schema::StringId::empty;
    bool metric = false;
    std::vector<std::pair<std::int64_t, double>> points;  // (time, value from then on), by time; no NaN
    CurveIndex<double> index;                             // of `points`
    double least = 0, most = 0;
};

struct Tracks {
    // Collectives first, then by rank (those without a rank last), in the order of Kind; then a query's
    // result. Empty ones are omitted.
    std::vector<Track> tracks;
    // By (rank, host, device, order in the file), those of no rank last. In a trace that has nothing else to
    // draw: its metrics.
    std::vector<CounterTrack> counters;
    std::vector<bool> has_memory;  // by rank index: allocations of device memory were recorded
    int result = 0;                // the number of a query's result; 0: there is none among them
    std::size_t memory() const;    // approximate bytes on the heap
    bool empty() const;            // nothing can be drawn over time
};

Tracks make_tracks(const store::Trace& trace);

// The times when at least one of the tracks is busy: of the streams if there are any among them, else of the
// host threads, else of all. It is the union of their events, so that a second in which two of them work
// counts once. The tracks are needed only during the call.
Lane busy_union(const store::Trace& trace, const std::vector<const Track*>& tracks);

// The place of an event; nullopt if it is not shown.
struct EventPlace {
    int track = 0, lane = 0;
    std::size_t item = 0;
};
std::optional<EventPlace> find_event(const store::Trace& trace, const Tracks& tracks, store::EventRef event);

// Device events launched by the runtime call with this index.
std::vector<std::int64_t> launched_by(const store::Trace& trace, std::int64_t call);

// --- One line for each process group with each of its collectives once, for any number of ranks: how long
// the first rank waits for the last one to arrive, and how long the transfer takes from then on.
// traces/analysis/communication/matching.h finds the parts of a collective. Pure, any thread. Times in
// nanoseconds.

// Lanes are filled but not finished. Only collectives with device events on at least two ranks are included.
std::vector<Track> collective_tracks(const store::Trace& trace);

}  // namespace shardscope::traces::lanes
