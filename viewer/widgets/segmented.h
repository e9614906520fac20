// Adjacent buttons of which one is on: the contents of a table, one of several views. Drawing layer (Dear
// ImGui); frame thread only.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardscope::viewer::widgets {

// A button that is highlighted while it is on; true: it was clicked.
bool on_button(const std::string& label, bool on);

// All on one line, a new one if the current line has no room; the cursor stays after them. `chosen` becomes
// the index of the button that was clicked; then returns true. For scripts: "<id>.<label>" in lower case with
// "_" for spaces.
bool segmented(std::string_view id, std::span<const std::string_view> labels, int& chosen);

// One button that is on or off, with the same look. For scripts: "<id>".
bool toggle_button(std::string_view id, std::string_view label, bool& on);

}  // namespace shardscope::viewer::widgets
