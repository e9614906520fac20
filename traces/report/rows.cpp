// Free-form rows (a query's result) as a table; see report.h.
#include <algorithm>

#include <fmt/core.h>

#include "traces/report/formats.h"
#include "traces/report/text_table.h"

namespace shardscope::traces {
namespace {

std::string cell_text(const Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
    if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{}", *real);
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    return {};
}

// A column is numeric where it holds a number and no text.
Align alignment(const std::vector<std::vector<Cell>>& rows, std::size_t column) {
    bool number = false;
    for (const std::vector<Cell>& row : rows) {
        if (column >= row.size()) continue;
        if (std::holds_alternative<std::string>(row[column])) return Align::left;
        number = number || !std::holds_alternative<std::monostate>(row[column]);
    }
    return number ? Align::right : Align::left;
}

}  // namespace

std::string table_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
    std::vector<Align> align;
    std::vector<std::string> header;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        align.push_back(alignment(rows, c));
        header.push_back(columns[c].name);
    }
    TextTable table(align);
    table.header(std::move(header));
    for (const std::vector<Cell>& row : rows) {
        std::vector<std::string> cells;
        cells.reserve(row.size());
        for (const Cell& cell : row) cells.push_back(cell_text(cell));
        table.row(std::move(cells));
    }
    return table.text();
}

}  // namespace shardscope::traces
