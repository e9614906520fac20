// The panels as a rail at the left: a sign and a name for each, in groups; narrow where the window is. Its
// items are called "rail.<panel>". Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include "viewer/app/program.h"

namespace shardscope::viewer {

// Draws into the current window, `height` high; its width is the result. A click shows the panel.
float draw_rail(Program& program, float height);

}  // namespace shardscope::viewer
