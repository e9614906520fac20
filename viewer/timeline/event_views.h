// What is shown of one event beside the timeline: the tooltip of an event or of a memory curve, and the
// fields of the selected event below. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/memory.h"
#include "traces/store/trace.h"
#include "viewer/app/session.h"
#include "viewer/timeline/fold_lane.h"

namespace shardscope::viewer {

void event_tip(const traces::Trace& trace, SelectedEvent event, const Hit& hit);
void memory_tip(const std::vector<traces::MemoryPoint>& curve, std::int64_t time);

// The fields of an event in columns, from the cursor to `right`; takes that width and event_fields_height().
float event_fields_height();
void draw_event_fields(const traces::Trace& trace, SelectedEvent event, float right);

}  // namespace shardscope::viewer
