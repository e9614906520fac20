// Carries out the timeline's actions, by their ids (app/actions_timeline.cpp). Drawing layer (it reads the
// mouse); frame thread only.
#pragma once

#include <string_view>

#include "viewer/model/session.h"
#include "viewer/timeline/timeline_parts.h"

namespace shardscope::viewer {

// Acts on the active trace, to which `on` belongs. Does nothing for an id that is not an action of the
// timeline.
void do_timeline_action(std::string_view action, Session& session, TraceOnPage& on, TimelineParts& parts);

}  // namespace shardscope::viewer
