// Where the events that a search found are drawn: by lane, and in the strip of the whole trace; folded to
// pixels, so that any number of them costs no more than the pixels of a row. Pure; any thread. Times in
// nanoseconds, positions in pixels from the left edge of the view.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/store/columns/event_columns.h"
#include "viewer/model/time_view.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {

struct HitMarks {
    std::vector<std::vector<std::vector<std::uint32_t>>>
        items;  // by track and lane: events of the lane, rising
    model::TimeSpan whole;
    std::vector<bool> strip;  // by slice of `whole`: a found event runs in it

    bool any(int track, int lane) const { return !of(track, lane).empty(); }
    const std::vector<std::uint32_t>& of(int track, int lane) const {
        return items[static_cast<std::size_t>(track)][static_cast<std::size_t>(lane)];
    }
};

// The bars of the joined rows of collectives count as the events that they stand for. Ends early once
// `cancel` is set.
HitMarks make_hit_marks(const traces::store::Trace& trace, const Tracks& tracks,
                        const traces::store::EventList& found, int slices, const std::atomic<bool>& cancel);

// A run of pixels with found events; `outlined`: of one event wide enough for a frame around it.
struct HitRun {
    float x0 = 0, x1 = 0;
    bool outlined = false;
};
// Runs in order. One event is at least kMarkWidth wide; those that touch are joined unless they are outlined,
// so that there are never more runs than the view has room for.
inline constexpr float kMarkWidth = 2, kOutlinedFrom = 8;
std::vector<HitRun> fold_hits(const Lane& lane, const std::vector<std::uint32_t>& items,
                              const model::TimeView& view);

}  // namespace shardscope::viewer::timeline
