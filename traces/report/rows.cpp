// Free-form rows, such as a query's result, as a table, JSON and CSV (RFC 4180, but lines end with one
// newline); what checking a trace found.
#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/result_text.h"
#include "traces/report/text_table.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

std::string cell_text(const Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
    if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{}", *real);
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    return {};
}

// A column is numeric if it contains a number and no text.
Align alignment(const std::vector<std::vector<Cell>>& rows, std::size_t column) {
    bool number = false;
    for (const std::vector<Cell>& row : rows) {
        if (column >= row.size()) continue;
        if (std::holds_alternative<std::string>(row[column])) return Align::left;
        number = number || !std::holds_alternative<std::monostate>(row[column]);
    }
    return number ? Align::right : Align::left;
}

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"') result += '"';
        result += c;
    }
    return result + '"';
}

std::string csv_cell(const Cell& cell) {
    if (const auto* yes = std::get_if<bool>(&cell)) return *yes ? "true" : "false";
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
    // An unknown value is not a number.
    if (const auto* real = std::get_if<double>(&cell))
        return std::isnan(*real) ? "" : fmt::format("{}", *real);
    if (const auto* text = std::get_if<std::string>(&cell)) return quoted(*text);
    return {};
}

std::string rows_table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
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

std::string rows_json(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
    Json names = Json::array();
    for (const Column& column : columns) names.push_back(column.name);
    Json all = Json::array();
    for (const std::vector<Cell>& row : rows) {
        Json cells = Json::array();
        for (const Cell& cell : row) cells.push_back(json_of(cell));
        all.push_back(std::move(cells));
    }
    return json_line({{"columns", std::move(names)}, {"rows", std::move(all)}});
}

}  // namespace

std::string rows_csv(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
    std::string result;
    const auto add_line = [&](const auto& cells, const auto& text_of) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (i > 0) result += ',';
            result += text_of(cells[i]);
        }
        result += '\n';
    };
    add_line(columns, [](const Column& column) { return quoted(column.name); });
    for (const std::vector<Cell>& row : rows) add_line(row, csv_cell);
    return result;
}

std::string render_rows(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                        Format format) {
    return render_as(
        format, [&] { return rows_table(columns, rows); }, [&] { return rows_json(columns, rows); },
        [&] { return rows_csv(columns, rows); });
}

std::string render_check(const std::string& file, const std::vector<std::string>& faults,
                         const std::vector<std::string>& notes, Format format) {
    switch (format) {
        case Format::json:
            return json_line(
                {{"file", file}, {"whole", faults.empty()}, {"faults", faults}, {"notes", notes}});
        case Format::csv: {
            std::vector<std::vector<Cell>> rows;
            rows.reserve(faults.size());
            for (const std::string& fault : faults) rows.push_back({file, fault});
            return rows_csv({{"file"}, {"fault"}}, rows);
        }
        case Format::table:
            break;
    }
    std::string text;
    if (faults.empty()) text = fmt::format("{}: whole.\n", printable(file));
    for (const std::string& fault : faults)
        text += printable(fault.starts_with(file) ? fault : file + ": " + fault) + "\n";
    for (const std::string& note : notes)
        text += fmt::format("{}: note: {}\n", printable(file), printable(note));
    return text;
}

}  // namespace shardscope::traces
