// Paints the timeline: ruler, row names, bars and strips, memory and counters. It makes no decisions:
// geometry comes from the arithmetic beside it; overlays.h paints what is over the rows. Drawing layer (Dear
// ImGui); frame thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <imgui.h>

#include "viewer/draw/fold.h"
#include "viewer/model/session.h"
#include "viewer/model/time_view.h"
#include "viewer/timeline/color_modes.h"
#include "viewer/timeline/counter_fold.h"
#include "viewer/timeline/folded_rows.h"
#include "viewer/timeline/gap_names.h"
#include "viewer/timeline/memory_rows.h"
#include "viewer/timeline/rows.h"

namespace shardscope::viewer::timeline {

inline constexpr float kFar = 1e5F;  // pixels: beyond this a screen coordinate only means "outside"

// The places of the parts on the screen.
struct TimelineArea {
    ImVec2 min, max;  // the whole except the scrollbar, which reaches to `outer`
    float outer = 0;
    float names = 0;   // width of the column of row names
    float ruler = 0;   // height of the ruler
    float scroll = 0;  // pixels of rows above the top
    float left() const { return min.x + names; }
    float top() const { return min.y + ruler; }
    float width() const { return max.x - left(); }
    float height() const { return max.y - top(); }
    // On the screen, limited to what a float represents exactly.
    float x_of(const model::TimeView& view, std::int64_t time) const {
        const double x = static_cast<double>(left()) + view.pixel(time);
        return static_cast<float>(std::clamp(x, -static_cast<double>(kFar), static_cast<double>(kFar)));
    }
};

// A step in one of the ruler's rows.
struct RulerStep {
    std::int64_t number = 0;
    model::TimeRange time;
};

struct TimelinePicture {
    const traces::store::Trace& trace;
    const Tracks& tracks;
    const RowLayout& layout;
    const FoldedRows& folded;
    const std::map<traces::store::RankIndex, MemoryRow>& memory;
    const CounterRows& counters;
    const TrackPaints* paints;                  // nullptr: by kind
    const traces::analysis::TraceWaits* waits;  // nullptr: not computed yet, and gaps have no names
    GapNames& gaps;
    const model::Session& session;
    model::TimeView view;
    TimelineArea area;
    std::optional<model::TimeRange> limit;
    model::SelectedEvent hovered;
    bool with_windows = false;                 // the ruler has a row for them, even before they are computed
    std::vector<RulerStep> windows = {};       // of the chosen rank's steps
    std::optional<model::TimeRange> lit = {};  // the window that another panel navigated to
    bool with_notes = true;                    // beside the groups' names
    bool of_active = true;                     // the session's selection is an event of this trace
};

void paint_rows(ImDrawList& draw, const TimelinePicture& picture);
void paint_names(ImDrawList& draw, const TimelinePicture& picture);
void paint_ruler(ImDrawList& draw, const TimelinePicture& picture);

}  // namespace shardscope::viewer::timeline
