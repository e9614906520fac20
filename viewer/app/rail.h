// The sidebar: an icon and a name for each panel, in groups; narrow in a narrow window. Its items are called
// "rail.<panel>". Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include "viewer/app/program.h"

namespace shardscope::viewer {

// Draws into the current window, `height` high; returns its width. A click shows the panel.
float draw_rail(Program& program, float height);

}  // namespace shardscope::viewer
