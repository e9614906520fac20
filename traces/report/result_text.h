// A result table (traces/analysis/base/result_table.h) as text, JSON and CSV. Internal to traces/report.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "traces/analysis/base/result_table.h"

namespace shardscope::traces {

// The columns that are shown in tables. `keys`: how many of them, from the left, identify a row
// (text_table.h). `width`: the columns of the terminal.
std::string text_of(const ResultTable& table, std::size_t width, std::size_t keys = 1);

// Full precision, one header line.
std::string csv_of(const ResultTable& table);

// An array of objects.
nlohmann::ordered_json json_of(const ResultTable& table);
nlohmann::ordered_json json_of(const Cell& cell);
// One row as an object.
nlohmann::ordered_json json_row(const std::vector<ResultColumn>& columns, const std::vector<Cell>& cells);
template <class Row, class Json = nlohmann::ordered_json>
Json json_row(Fields<Row> fields, const Row& row) {
    std::vector<Cell> cells;
    add_cells(cells, fields, row);
    return json_row({fields.begin(), fields.end()}, cells);
}

}  // namespace shardscope::traces
