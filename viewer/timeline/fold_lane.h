// The drawing of a lane: bars for events that the eye can distinguish, and for the rest one strip per pixel
// column whose height is the share of the column's time that is busy and whose colour is the kind with the
// most time. Nothing is drawn that is not there: the strips' busy time and the bars' visible time add up to
// the lane's busy time in the view, exactly, at every zoom. Pure arithmetic, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viewer/model/time_view.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {

struct Bar {
    float x0 = 0, x1 = 0;    // pixels, clipped to the view
    std::uint32_t item = 0;  // index in the lane
};

struct FoldedPixel {
    int column = 0;
    Paint paint = 0;
    std::int64_t busy_ns = 0, column_ns = 0;
    std::uint32_t first = 0, last = 0;  // items [first, last) that touch the column
    double share() const {
        return column_ns > 0 ? static_cast<double>(busy_ns) / static_cast<double>(column_ns) : 1.0;
    }
};

struct FoldedLane {
    int columns = 0;                  // in the view's width
    std::vector<Bar> bars;            // left to right
    std::vector<FoldedPixel> pixels;  // left to right; columns without a folded event are omitted
};

inline constexpr double kShortestBar = 3;  // columns; shorter events are folded

// `columns` pixel columns share the view's width (one each, or fewer if a picture has too many lanes).
// `paints`, if given, replace the lane's own.
FoldedLane fold_lane(const Lane& lane, const model::TimeView& view, int columns,
                     const LanePaints* paints = nullptr);

// The number of the lane's events that are visible in part or whole.
std::size_t events_in(const Lane& lane, const model::TimeView& view);

// A lane that contributes to a summary strip.
struct StripMember {
    const Lane* lane = nullptr;
    const LanePaints* paints = nullptr;
};
// The summary strip of a group: a column's height is the share of its time in which `busy` (the union of the
// group's events, tracks.h) has an event, its paint the one with the most of the members' time in it. Exact
// at every zoom: columns without any event are omitted.
std::vector<FoldedPixel> fold_strip(const Lane& busy, const std::vector<StripMember>& members,
                                    const model::TimeView& view, int columns);

// What is under a pixel: an event; and if it is one of several, their number and how busy they are.
struct Hit {
    std::uint32_t item = 0;
    int events = 1;   // more than 1: a folded column
    double busy = 1;  // share of that column's time
};
std::optional<Hit> hit_lane(const Lane& lane, const FoldedLane& folded, const model::TimeView& view,
                            double x);

}  // namespace shardscope::viewer::timeline
