// The Module View's table: the tree of one rank with its columns. Drawing layer; frame thread only.
#pragma once

#include <vector>

#include "viewer/panels/module_rows.h"

namespace shardscope::viewer {

// What a table click did this frame.
struct ModuleTableResult {
    bool clicked = false;
    int module = -1;  // ModuleRow::id of the row clicked
};

// The columns that fit into `width` pixels beside a readable name, in the order of the table.
std::vector<ModuleColumn> columns_that_fit(float width);

// Draws the table into what is left of the window; `state` takes what the user opens, closes and sorts.
ModuleTableResult draw_module_table(const traces::RankModules& rank, ModuleTreeState& state,
                                    int selected_module);

}  // namespace shardscope::viewer
