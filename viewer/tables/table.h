// Draws a TableModel: headers with units, right-aligned numbers with bars, sorting by click, a filter field,
// columns that can be hidden, keyboard, copy, and export of what is shown. Only visible rows cost anything.
// Drawing layer (Dear ImGui); frame thread only.
//
// For scripts (draw/items.h), with `id` as given: "<id>.filter", "<id>.header.<column>", and for each row in
// sight "<id>.<key>" and "<id>.<key>.<column>" with the cell's exact text, where key is that of the first
// cell, and "<id>.row.<n>" (n in the shown order, from 0). "<id>.rows" is the number of rows shown;
// "<id>.order" exists while they are being sorted. For a second table with the same id in a frame the names
// begin with
// "<id>#2".
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <imgui.h>

#include "viewer/tables/column_scale.h"
#include "viewer/tables/table_order.h"

namespace shardscope::viewer::tables {

// What a panel keeps between frames for each of its tables. Sorting and hidden columns are restored next time
// by the table's id (table_order.h).
struct TableState {
    TableSort sort;  // set before the first frame to replace the model's order
    std::string filter;
    std::optional<std::size_t> chosen;  // row of the model; of another model the row with the same texts
    TableOrder order;
    bool scroll_to_chosen = false;  // scrolls to the row, once it is there

    // Internal to the table.
    const TableModel* seen = nullptr;  // a panel that sets it to its next model keeps the chosen row
    int remade = 0;                    // number of consecutive frames with a new model
    std::set<std::string> hidden;      // ids of hidden columns
    bool all_columns = false;          // including those that do not fit the window
    bool remembered = false;           // table_memory() was consulted
    std::size_t context_column = 0;    // the one on which the row's menu was opened
    std::vector<double> largest;       // by column with bars, of `measured`
    ColumnScales scales;
    std::shared_ptr<const TableModel> measured;  // kept alive, so that its address is not reused

    // Drops the model, and everything that belongs only to its rows.
    void forget_model() {
        order = {};
        measured = nullptr;
        scales = {};
        largest.clear();
        seen = nullptr;
        chosen.reset();
    }
};

struct TableOptions {
    ImVec2 size = {0, 0};   // 0: the remaining room
    bool filter = true;     // a field above the table
    std::string name = {};  // in menus and file names of exports: "units"; empty: the id
};

struct TableEvents {
    std::optional<std::size_t> clicked, opened, hovered;  // rows of the model; opened: double-click or Enter
    bool by_key = false;                                  // `clicked` was reached with the keyboard
    // For panels that go to the row's place: a click or Enter, but not rows that the keyboard only passes.
    std::optional<std::size_t> go_to() const { return opened || by_key ? opened : clicked; }
};

// The keyboard moves the chosen row while the table has the focus (a click sets it): Up, Down, PgUp, PgDn,
// Home, End; Enter opens. A row's menu copies the cell or the row, the header's hides and shows columns, both
// export.
TableEvents draw_table(const char* id, const std::shared_ptr<const TableModel>& model, TableState& state,
                       const TableOptions& options = {});

// The tables of the frame that was drawn last, as sorted and filtered: the choices of "Export table".
struct ShownTable {
    std::string name;
    std::shared_ptr<const TableModel> model;
    std::shared_ptr<const std::vector<std::uint32_t>> order;  // nullptr: not there yet
};
std::vector<ShownTable> shown_tables();

// The name of a table whose menu requested an export, returned once. The shell asks every frame.
std::optional<std::string> take_export_request();
// Adds a table that is drawn in another way (a tree, cards) to the tables of this frame.
void offer_table(ShownTable table);

}  // namespace shardscope::viewer::tables
