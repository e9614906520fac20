// Paints the timeline: ruler, row names, bars and strips, memory curves, the launch arrow. It decides
// nothing: geometry comes from the arithmetic beside it. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <imgui.h>

#include "viewer/app/session.h"
#include "viewer/draw/fold.h"
#include "viewer/timeline/folded_rows.h"
#include "viewer/timeline/rows.h"
#include "viewer/timeline/time_view.h"

namespace shardscope::viewer {

// Where the parts lie on the screen.
struct TimelineArea {
    ImVec2 min, max;   // the whole
    float names = 0;   // width of the column of row names
    float ruler = 0;   // height of the ruler
    float scroll = 0;  // pixels of rows above the top
    float left() const { return min.x + names; }
    float top() const { return min.y + ruler; }
    float width() const { return max.x - left(); }
    float height() const { return max.y - top(); }
};

struct MemoryRow {
    std::shared_ptr<const std::vector<traces::MemoryPoint>> points;
    std::int64_t most = 0;              // of the whole curve: the row's full height
    std::vector<FoldedColumn> columns;  // of the view
};

struct TimelinePicture {
    const traces::Trace& trace;
    const Tracks& tracks;
    const RowLayout& layout;
    const FoldedRows& folded;
    const std::map<int, MemoryRow>& memory;  // by index into Trace::ranks
    const Session& session;
    const std::set<int>& folded_ranks;
    TimeView view;
    TimelineArea area;
    std::optional<TimeRange> limit;
    SelectedEvent hovered;
    std::vector<SelectedEvent> related;   // counterparts of the selected collective
    std::vector<SelectedEvent> launched;  // device events of the selected call, or the selected one itself
    SelectedEvent launch;                 // the call they come from
};

void paint_rows(ImDrawList& draw, const TimelinePicture& picture);
void paint_names(ImDrawList& draw, const TimelinePicture& picture);
void paint_ruler(ImDrawList& draw, const TimelinePicture& picture);

}  // namespace shardscope::viewer
