// Names of what is on the screen, so that a script can click on it and read it: "modules.search",
// "units.row.3", "summary.value.step_time". Kept only while a script runs; otherwise every call returns
// immediately. Drawing layer (Dear ImGui); frame thread only.
//
// Names are stable: the panel's name, then the item's, in lower case with points between; rows of tables by
// the text of their first cell if that is unique, else by number (see tables/table.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

namespace shardscope::viewer::draw::items {

struct Item {
    ImVec2 min, max;       // on the screen
    std::string text;      // its text, for `expect`
    bool in_sight = true;  // false: scrolled out of its window, so that the mouse cannot reach it
};

void keep(bool on);  // turns keeping on or off; both forget the names kept so far
bool kept();
void set_prefix(std::string prefix);  // of the names from now on: those of a second window
void begin_frame();                   // from now on find() and names() answer for the frame just drawn

// Names the last item that Dear ImGui drew.
void mark(std::string_view name, std::string_view text = {});
// Names a place that is not an item of Dear ImGui: a bar of a chart, a row of the timeline.
void place(std::string_view name, ImVec2 min, ImVec2 max, std::string_view text = {});
// Names a figure that is shown, wherever it is.
void value(std::string_view name, std::string_view text);

std::optional<Item> find(std::string_view name);  // in the frame that was drawn last
std::vector<std::string> names();                 // all of them, for error messages

}  // namespace shardscope::viewer::draw::items
