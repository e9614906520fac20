// The help window: every key of the action table by menu, and what the mouse does. Drawing layer (Dear
// ImGui); frame thread only.
#pragma once

namespace shardscope::viewer {

// Draws while `open`; clears it when it is closed.
void draw_help_window(bool& open);

}  // namespace shardscope::viewer
