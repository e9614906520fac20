// The menus of a table: on a row (copy, export) and on the header (columns). Drawing layer (Dear ImGui).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "viewer/tables/table.h"

namespace shardscope::viewer {

// For the item drawn last, a row. True: an export was requested. For scripts: "<id>.menu.copy_cell",
// "<id>.menu.copy_row", "<id>.menu.export".
bool draw_row_menu(const std::string& id, const TableModel& model, std::size_t row, TableState& state,
                   const std::vector<std::size_t>& columns);

// Contents of a popup about the columns. True: an export was requested. For scripts: "<id>.columns.<column>"
// with "shown" or "hidden", "<id>.columns_menu.all", "<id>.columns_menu.order", "<id>.columns_menu.export".
bool draw_column_menu(const std::string& id, const TableModel& model, TableState& state);

// The cells of a row, separated by tabs as for spreadsheets.
std::string row_text(const TableModel& model, std::size_t row, const std::vector<std::size_t>& columns);

}  // namespace shardscope::viewer
