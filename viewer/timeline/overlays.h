// Overlays of the timeline's rows: arrows between related events, marks, the measure, the limit's handles,
// the cursor that panels share. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <imgui.h>

#include "viewer/model/marks.h"
#include "viewer/model/session.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

struct OverlayScene {
    const model::OpenTrace& entry;
    const TimelinePage& page;
    const model::MarkBook& marks;
    int chosen_mark = -1;  // index into marks
};

// Painted between the rows and the ruler: clipped to the rows.
void paint_overlays(ImDrawList& draw, const OverlayScene& scene);
// Painted on the ruler.
void paint_ruler_overlays(ImDrawList& draw, const OverlayScene& scene);
// The mark whose tag is at this point; -1: none.
int mark_at(const OverlayScene& scene, ImVec2 point);

}  // namespace shardscope::viewer::timeline
