// The whole trace in one strip: how busy its devices are in each of a few thousand slices of time, and with
// what; if no device has events, how busy its host threads are. Pure; any thread. Nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/store/columns/trace.h"
#include "viewer/model/time_view.h"

namespace shardscope::viewer::timeline {

struct MinimapSlice {
    float busy = 0;           // 0..1: share of the slice in which a rank had an event, mean over the ranks
    float communication = 0;  // the part of `busy` with only communication
    float copies = 0;         // the part of `busy` with copies or fills, and no kernel
    bool operator==(const MinimapSlice&) const = default;
};

struct Minimap {
    model::TimeSpan whole;
    std::vector<MinimapSlice> slices;  // of equal length, over `whole`
    bool of_devices = true;
};

// Exact: an instant with several events of a rank counts once.
Minimap make_minimap(const traces::store::Trace& trace, int slices);

}  // namespace shardscope::viewer::timeline
