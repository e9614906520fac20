// The two lines above the timeline: which trace and rank, what rows are called, what bars are coloured by,
// finding, measuring, marks; and below it the legend with what is shown. Drawing layer (Dear ImGui); frame
// thread only.
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
    bool& focus_filter;     // the field of the rows' filter is wanted
    std::size_t marks = 0;  // how many there are
};

// Returns the id of the action that was clicked ("back"), empty where none was.
std::string draw_timeline_toolbar(Session& session, TimelinePage& page, FindBar& find, ToolbarState state);

}  // namespace shardscope::viewer
