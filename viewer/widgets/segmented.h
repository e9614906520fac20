// Buttons side by side of which one is on: what a table shows, which of several views. Drawing layer (Dear
// ImGui); frame thread only.
#pragma once

#include <span>
#include <string_view>

namespace shardscope::viewer {

// In one line, a new one where the line before has no room; the cursor stays behind them. `chosen` becomes
// the index of the button that was clicked; true then. For scripts: "<id>.<label>" in lower case with "_" for
// spaces.
bool segmented(std::string_view id, std::span<const std::string_view> labels, int& chosen);

// One button that is on or off, in the same look. For scripts: "<id>".
bool toggle_button(std::string_view id, std::string_view label, bool& on);

}  // namespace shardscope::viewer
