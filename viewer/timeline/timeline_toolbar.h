// The two lines above the timeline: trace and rank, the names of rows, the colours of bars, finding,
// measuring, marks; and below it the legend with the visible range. Drawing layer (Dear ImGui); frame thread
// only.
#pragma once

#include <cstddef>
#include <string>

#include "viewer/model/session.h"
#include "viewer/timeline/find_bar.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer {

struct ToolbarState {
    bool& measuring;
    bool& marks_shown;
    bool& focus_filter;     // the filter field of the rows is requested
    std::size_t marks = 0;  // number of marks
};

// Returns the id of the action that was clicked ("back"), or empty.
std::string draw_timeline_toolbar(Session& session, TimelinePage& page, FindBar& find, ToolbarState state);

}  // namespace shardscope::viewer
