// One picture of the timeline: missing parts are folded or requested, then everything is painted. Drawing
// layer (Dear ImGui); frame thread only.
#pragma once

#include <imgui.h>

#include "viewer/model/session.h"
#include "viewer/timeline/overlays.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer {

// Computed in the background, nullptr until then: the paints of these tracks in the session's colour mode;
// and when at least one of a group's tracks is busy, for its summary strip.
std::shared_ptr<const TrackPaints> paints_of(Session& session, const TracePtr& trace,
                                             const std::shared_ptr<const Tracks>& tracks);
std::shared_ptr<const Lane> busy_of(Session& session, const TracePtr& trace,
                                    const std::shared_ptr<const Tracks>& tracks, const RowGroup& group);

// Updates the page's colours; by kind until the others are ready.
void update_paints(Session& session, TimelinePage& page);

void paint_timeline(ImDrawList& draw, Session& session, TimelinePage& page, const OverlayScene& scene);

}  // namespace shardscope::viewer
