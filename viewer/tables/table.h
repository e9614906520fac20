// Draws a TableModel: headers with units, right-aligned numbers with bars, sorting by click, a filter field,
// columns that can be hidden, keyboard, copy, and export of what is shown. Only rows in sight cost anything.
// Drawing layer (Dear ImGui); frame thread only.
//
// For scripts (draw/items.h), with `id` as given: "<id>.filter", "<id>.header.<column>", and for each row in
// sight "<id>.<key>" and "<id>.<key>.<column>" with the cell's text, where key is the text of the first cell,
// and
// "<id>.row.<n>" (n in the shown order, from 0). "<id>.rows" says how many rows are shown, "<id>.order" that
// they are being put in order. Of a second table of the same id in a frame the names begin with "<id>#2".
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <imgui.h>

#include "viewer/tables/table_order.h"

namespace shardscope::viewer {

// What a panel keeps between frames for each of its tables. Sorting and hidden columns come back next time
// under the table's id (table_memory.h).
struct TableState {
    TableSort sort;  // set before the first frame for another start than the model's order
    std::string filter;
    std::optional<std::size_t> chosen;  // row of the model; cleared when the model changes
    TableOrder order;
    bool scroll_to_chosen = false;  // brings it in sight, once it is there

    // The table's own.
    const TableModel* seen = nullptr;  // a panel that sets it to its next model keeps the chosen row
    int remade = 0;                    // frames in a row in which the model was another
    std::set<std::string> hidden;      // columns that were taken away, by id
    bool all_columns = false;          // also those that the window has no room for
    bool remembered = false;           // table_memory() was asked
    std::size_t context_column = 0;    // that the row's menu was opened on
    std::vector<double> largest;       // of each column with bars, of `measured`
    std::shared_ptr<const TableModel> measured;  // kept, so that no other comes to its address

    // Lets go of the model, and of what belongs to its rows alone.
    void forget_model() {
        order = {};
        measured = nullptr;
        largest.clear();
        seen = nullptr;
        chosen.reset();
    }
};

struct TableOptions {
    ImVec2 size = {0, 0};   // 0: what is left
    bool filter = true;     // a field above the table
    std::string name = {};  // in menus and file names of exports: "units"; empty: the id
};

struct TableEvents {
    std::optional<std::size_t> clicked, opened, hovered;  // rows of the model; opened: double-click or Enter
    bool by_key = false;                                  // `clicked` is where the keyboard came to
    // For panels that leave for the row's place: a click or Enter, not where the keyboard only passes.
    std::optional<std::size_t> go_to() const { return opened || by_key ? opened : clicked; }
};

// The keyboard moves the chosen row while the table has it (a click gives it): Up, Down, PgUp, PgDn, Home,
// End, Enter opens. A row's menu copies the cell or the row, the header's hides and shows columns, both
// export.
TableEvents draw_table(const char* id, const std::shared_ptr<const TableModel>& model, TableState& state,
                       const TableOptions& options = {});

// The tables of the frame that was drawn last, as they are sorted and filtered: what "Export table" offers.
struct ShownTable {
    std::string name;
    std::shared_ptr<const TableModel> model;
    std::shared_ptr<const std::vector<std::uint32_t>> order;  // nullptr: not there yet
};
std::vector<ShownTable> shown_tables();

// A table whose menu asked to be exported, once: its name. The shell asks every frame.
std::optional<std::string> take_export_request();
// Adds one that is drawn in another way (a tree, cards) to the tables of this frame.
void offer_table(ShownTable table);

}  // namespace shardscope::viewer
