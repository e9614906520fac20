// Names of what the timeline shows, for scripts (draw/items.h): rows, and bars whose text is read.
// Drawing layer (Dear ImGui); frame thread only.
//
//     timeline.row.<key>                    the name of a group or row, by its key (arrangement.h):
//                                           "timeline.row.rank 0", "timeline.row.rank 0/stream 7"
//     timeline.event.<label>                the first bar in sight (by row, then time) that says this
//     timeline.event.<label>.<n>            the n-th, from 1
#pragma once

#include "viewer/model/session.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer {

// Does nothing unless names are kept.
void name_timeline_items(const OpenTrace& entry, const TimelinePage& page);

}  // namespace shardscope::viewer
