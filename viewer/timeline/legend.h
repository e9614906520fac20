// Which colours the timeline of a trace uses, with their names. No Dear ImGui calls; any thread.
#pragma once

#include <vector>

#include "viewer/draw/text.h"
#include "viewer/timeline/color_modes.h"

namespace shardscope::viewer {

// What is in the trace; of many names those that take most of the time.
std::vector<LegendItem> make_legend(const TrackPaints& paints);

}  // namespace shardscope::viewer
