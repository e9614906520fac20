// Draws a TreeModel: a tree in the first column, sorting within siblings, search, columns that can be hidden,
// export with the other tables. Only visible rows cost anything. Drawing layer (Dear ImGui); frame thread
// only.
//
// For scripts (draw/items.h), with `id` as given: "<id>.search", "<id>.open_all", "<id>.close_all",
// "<id>.columns", "<id>.header.<column>"; for each row in sight "<id>.row.<path>", "<id>.arrow.<path>" (opens
// and closes it) and "<id>.<path>.<column>" with the cell's exact text. "<id>.rows" says how many rows are
// shown.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <imgui.h>

#include "viewer/tables/tree_model.h"

namespace shardscope::viewer::tables {

struct TreeOptions {
    ImVec2 size = {0, 0};                           // 0: the remaining room
    std::string name = {};                          // in menus and file names of exports; empty: the id
    std::string first = "Module";                   // title of the tree's column
    std::function<void(std::size_t row)> tip = {};  // draws the tooltip of a row
};

struct TreeEvents {
    std::optional<std::size_t> clicked, opened;  // rows of the model; opened: double-click or Enter
};

// On one line: the search field, "Open all", "Close all", "Columns".
void draw_tree_controls(const char* id, const std::shared_ptr<const TreeModel>& model, TreeState& state);

TreeEvents draw_tree(const char* id, const std::shared_ptr<const TreeModel>& model, TreeState& state,
                     const TreeOptions& options = {});

}  // namespace shardscope::viewer::tables
