// The colours in the timeline of a trace, with their names. No Dear ImGui calls; any thread.
#pragma once

#include <vector>

#include "viewer/draw/text.h"
#include "viewer/timeline/color_modes.h"

namespace shardscope::viewer {

// The names in the trace; if there are many, those with the most time.
std::vector<LegendItem> make_legend(const TrackPaints& paints);

}  // namespace shardscope::viewer
