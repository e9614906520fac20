// Memory by category and counters as rows of the timeline. Exact in each pixel: the solid part held
// throughout the pixel, the pale part only at its highest moment. Drawing layer; frame thread only.
#pragma once

#include <imgui.h>

#include "viewer/timeline/painter.h"

namespace shardscope::viewer {

void paint_memory(ImDrawList& draw, const TimelinePicture& picture, const Row& row);
void paint_counter(ImDrawList& draw, const TimelinePicture& picture, const Row& row);

}  // namespace shardscope::viewer
