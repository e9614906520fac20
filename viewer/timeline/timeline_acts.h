// What the timeline's actions do, by their ids (app/actions_timeline.cpp). Drawing layer (it reads the
// mouse); frame thread only.
#pragma once

#include <string_view>

#include "viewer/model/session.h"
#include "viewer/timeline/timeline_parts.h"

namespace shardscope::viewer {

// Of the active trace, which `on` is of. Does nothing for an id that is no action of the timeline's.
void do_timeline_action(std::string_view action, Session& session, TraceOnPage& on, TimelineParts& parts);

}  // namespace shardscope::viewer
