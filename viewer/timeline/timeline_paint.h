// One picture of the timeline: what is missing for it is folded or asked for, then everything is painted.
// Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <imgui.h>

#include "viewer/app/session.h"
#include "viewer/timeline/overlays.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer {

// The colours that the session wants: worked out beside the frames; until then by kind.
void update_paints(Session& session, TimelinePage& page);

void paint_timeline(ImDrawList& draw, Session& session, TimelinePage& page, const OverlayScene& scene);

}  // namespace shardscope::viewer
