// Views of the one event under the mouse: the tooltip of an event or of a memory curve. Drawing layer (Dear
// ImGui); frame thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/memory/memory.h"
#include "traces/store/columns/trace.h"
#include "viewer/model/session.h"
#include "viewer/timeline/fold_lane.h"

namespace shardscope::viewer {

void event_tip(const traces::Trace& trace, SelectedEvent event, const Hit& hit);
void memory_tip(const std::vector<traces::MemoryPoint>& curve, std::int64_t time);

}  // namespace shardscope::viewer
