// What tables and trees of rows (table.h, tree_table.h) draw in the same way: the choice of columns, sorting,
// cells, keys, menus. Drawing layer (Dear ImGui).
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <imgui.h>

#include "viewer/tables/column_scale.h"
#include "viewer/tables/table.h"

namespace shardscope::viewer::tables {

// The columns from `first` on that are not hidden and fit, by priority, in the order of the model.
struct ColumnRoom {
    float width = 0, used = 0;  // pixels; `used`: taken by what is left of the columns
    std::size_t first = 0;
    bool all = false;  // including those that do not fit
};
std::vector<std::size_t> columns_that_fit(const TableModel& model, const std::set<std::string>& hidden,
                                          const ColumnRoom& room);

// "Gather" above the unit in which it is written.
std::string header_text(const TableColumn& column, const ColumnScale& scale);
// The sorting that the user has just chosen by a click on a header.
std::optional<TableSort> new_sorting();
// `value` is scaled_text(); `most`: the value of a whole bar; 0: no bar. Under the mouse a tooltip tells what
// the text rounds, which scripts read as "table.exact".
void draw_cell(const TableModel& model, std::size_t row, std::size_t column, const std::string& value,
               const ColumnScale& scale, double most);
bool key_pressed(ImGuiKey key);
// Shows the column, or hides it.
void show_column(std::set<std::string>& hidden, const std::string& id, bool show);

// For the item drawn last, a row. True: an export was requested. For scripts: "<id>.menu.copy_cell",
// "<id>.menu.copy_row", "<id>.menu.export".
bool draw_row_menu(const std::string& id, const TableModel& model, std::size_t row, TableState& state,
                   const std::vector<std::size_t>& columns);

// Contents of a popup about the columns. True: an export was requested. For scripts: "<id>.columns.<column>"
// with "shown" or "hidden", "<id>.columns_menu.all", "<id>.columns_menu.order", "<id>.columns_menu.export".
bool draw_column_menu(const std::string& id, const TableModel& model, TableState& state);

// The cells of a row, separated by tabs as for spreadsheets.
std::string row_text(const TableModel& model, std::size_t row, const std::vector<std::size_t>& columns);

}  // namespace shardscope::viewer::tables
