// Draws a TableModel: headers with units, right-aligned numbers with bars, sorting by click, a filter field,
// columns that can be hidden, keyboard, copy, and export of what is shown. Only rows in sight cost anything.
// Drawing layer (Dear ImGui); frame thread only.
//
// For scripts (draw/items.h), with `id` as given: "<id>.filter", "<id>.header.<column>", and for each row in
// sight "<id>.<key>" and "<id>.<key>.<column>" with the cell's text, where key is the text of the first cell,
// and
// "<id>.row.<n>" (n in the shown order, from 0). "<id>.rows" says how many rows are shown.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <imgui.h>

#include "viewer/tables/table_order.h"

namespace shardscope::viewer {

// What a panel keeps between frames for each of its tables.
struct TableState {
    TableSort sort;  // set before the first frame for another start than the model's order
    std::string filter;
    std::optional<std::size_t> chosen;  // row of the model; cleared when the model changes
    TableOrder order;

    const TableModel* seen = nullptr;
    bool scroll_to_chosen = false;
};

struct TableOptions {
    ImVec2 size = {0, 0};   // 0: what is left
    bool filter = true;     // a field above the table
    std::string name = {};  // in menus and file names of exports: "units"; empty: the id
};

struct TableEvents {
    std::optional<std::size_t> clicked, opened, hovered;  // rows of the model; opened: double-click or Enter
};

TableEvents draw_table(const char* id, const std::shared_ptr<const TableModel>& model, TableState& state,
                       const TableOptions& options = {});

// The tables of the frame that was drawn last, as they are sorted and filtered: what "Export table" offers.
struct ShownTable {
    std::string name;
    std::shared_ptr<const TableModel> model;
    std::vector<std::uint32_t> order;
};
std::vector<ShownTable> shown_tables();
// Adds one that is drawn in another way (a tree, cards) to the tables of this frame.
void offer_table(ShownTable table);

}  // namespace shardscope::viewer
