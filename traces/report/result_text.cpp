// See result_text.h.
#include "traces/report/result_text.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/text_table.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestText = 80;

// The indices of the columns that are shown there.
std::vector<std::size_t> columns_of(const ResultTable& table, ShownIn where) {
    std::vector<std::size_t> places;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        if (where == in_table ? !shown_in_table(table, c) : (table.columns[c].shown & where) == 0) continue;
        places.push_back(c);
    }
    return places;
}

}  // namespace

std::string text_of(const ResultTable& table, std::size_t width, std::size_t keys) {
    std::vector<Align> align;
    std::vector<std::string> header;
    const std::vector<std::size_t> shown = columns_of(table, in_table);
    for (const std::size_t c : shown) {
        align.push_back(table.columns[c].unit == Unit::text ? Align::left : Align::right);
        header.push_back(header_text(table.columns[c]));
    }
    TextTable text(align, keys);
    text.header(std::move(header));
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
        if (std::find(table.rules.begin(), table.rules.end(), r) != table.rules.end()) text.rule();
        std::vector<std::string> cells;
        for (const std::size_t c : shown)
            cells.push_back(shortened(cell_text(table.columns[c], table.rows[r][c]), kLongestText));
        text.row(std::move(cells));
    }
    return text.text(width);
}

std::string csv_of(const ResultTable& table) {
    const std::vector<std::size_t> shown = columns_of(table, in_csv);
    std::vector<Column> columns;
    for (const std::size_t c : shown) columns.push_back({std::string(table.columns[c].key)});
    std::vector<std::vector<Cell>> rows;
    for (const std::vector<Cell>& row : table.rows) {
        rows.emplace_back();
        for (const std::size_t c : shown) rows.back().push_back(row[c]);
    }
    return rows_csv(columns, rows);
}

Json json_of(const Cell& cell) {
    return std::visit(
        [](const auto& value) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
                return nullptr;
            } else {
                return value;
            }
        },
        cell);
}

Json json_row(const std::vector<ResultColumn>& columns, const std::vector<Cell>& cells) {
    Json json = Json::object();
    for (std::size_t c = 0; c < columns.size(); ++c) {
        if ((columns[c].shown & in_json) != 0) json[std::string(columns[c].key)] = json_of(cells[c]);
    }
    return json;
}

Json json_of(const ResultTable& table) {
    Json rows = Json::array();
    for (const std::vector<Cell>& row : table.rows) rows.push_back(json_row(table.columns, row));
    return rows;
}

}  // namespace shardscope::traces
