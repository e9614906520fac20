// The table of panels: one row for each, in the order of the sidebar, with its key. No Dear ImGui; any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "viewer/model/keys.h"

namespace shardscope::viewer::model {
class Panel;
}

namespace shardscope::viewer::panels {

// A stroke of an icon on a grid of 16 x 16: a line from a to b, a filled box, an outlined box, or a filled or
// outlined circle (a: centre, b.x: radius).
enum class Shape : std::uint8_t { line, box, frame, dot, ring };
struct Stroke {
    Shape shape;
    float ax, ay, bx, by;
};

struct PanelEntry {
    std::string_view name;   // as in --panel: "timeline"
    std::string_view title;  // on its tab, in menus and in the palette
    std::string_view group;
    std::span<const Stroke> icon;
    model::Chord key;  // shows it
    std::unique_ptr<model::Panel> (*make)();
};

std::span<const PanelEntry> panel_table();
// Null if no panel has this name.
const PanelEntry* find_panel(std::string_view name);
// For a panel that is not in the table: the name itself, or "".
std::string_view panel_title(std::string_view name);
std::string_view panel_group(std::string_view name);
// Throws std::out_of_range if no panel has this name.
std::unique_ptr<model::Panel> make_panel(std::string_view name);
// All panels, in the order of the table. A program makes them once.
std::vector<std::unique_ptr<model::Panel>> make_panels();

}  // namespace shardscope::viewer::panels
