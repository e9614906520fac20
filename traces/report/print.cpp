// Prints result tables, free-form rows (such as a query's result) and the findings of a check as text, JSON
// and CSV (RFC 4180, except that lines end with a newline alone).
#include "traces/report/print.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestText = 80;

// The indices of the columns that are shown there.
std::vector<std::size_t> columns_of(const analysis::ResultTable& table, analysis::ShownIn where) {
    std::vector<std::size_t> places;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        if (where == analysis::in_table ? !shown_in_table(table, c) : (table.columns[c].shown & where) == 0)
            continue;
        places.push_back(c);
    }
    return places;
}

std::string plain_text(const store::Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
    if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{}", *real);
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    return {};
}

// A column is numeric if it contains a number and no text.
Align alignment(const std::vector<std::vector<store::Cell>>& rows, std::size_t column) {
    bool number = false;
    for (const std::vector<store::Cell>& row : rows) {
        if (column >= row.size()) continue;
        if (std::holds_alternative<std::string>(row[column])) return Align::left;
        number = number || !std::holds_alternative<std::monostate>(row[column]);
    }
    return number ? Align::right : Align::left;
}

std::string csv_cell(const store::Cell& cell) {
    if (const auto* yes = std::get_if<bool>(&cell)) return *yes ? "true" : "false";
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
    // NaN stands for an unknown value.
    if (const auto* real = std::get_if<double>(&cell))
        return std::isnan(*real) ? "" : fmt::format("{}", *real);
    if (const auto* text = std::get_if<std::string>(&cell)) return schema::csv_field(*text);
    return {};
}

std::string rows_table(const std::vector<Column>& columns,
                       const std::vector<std::vector<store::Cell>>& rows) {
    std::vector<Align> align;
    std::vector<std::string> header;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        align.push_back(alignment(rows, c));
        header.push_back(columns[c].name);
    }
    TextTable table(align);
    table.header(std::move(header));
    for (const std::vector<store::Cell>& row : rows) {
        std::vector<std::string> cells;
        cells.reserve(row.size());
        for (const store::Cell& cell : row) cells.push_back(plain_text(cell));
        table.row(std::move(cells));
    }
    return table.text();
}

std::string rows_json(const std::vector<Column>& columns, const std::vector<std::vector<store::Cell>>& rows) {
    Json names = Json::array();
    for (const Column& column : columns) names.push_back(column.name);
    Json all = Json::array();
    for (const std::vector<store::Cell>& row : rows) {
        Json cells = Json::array();
        for (const store::Cell& cell : row) cells.push_back(json_of(cell));
        all.push_back(std::move(cells));
    }
    return json_line({{"columns", std::move(names)}, {"rows", std::move(all)}});
}

}  // namespace

std::string json_line(const Json& json) {
    return schema::dump_json(json) + "\n";
}

Json json_pairs(const std::vector<std::pair<std::string, std::string>>& all) {
    Json json = Json::object();
    for (const auto& [key, value] : all) json[key] = value;
    return json;
}

Json known_or_null(std::int64_t value) {
    return value > 0 ? Json(value) : Json(nullptr);
}

Json known_or_null(double value) {
    return value > 0 ? Json(value) : Json(nullptr);
}

std::string split_key(std::string_view category) {
    return "split_" + schema::snake_case(category) + "_us";
}

Json with(Json first, const Json& second) {
    first.update(second);
    return first;
}

std::string text_of(const analysis::ResultTable& table, std::size_t width, std::size_t keys) {
    std::vector<Align> align;
    std::vector<std::string> header;
    const std::vector<std::size_t> shown = columns_of(table, analysis::in_table);
    for (const std::size_t c : shown) {
        align.push_back(table.columns[c].unit == analysis::Unit::text ? Align::left : Align::right);
        header.push_back(header_text(table.columns[c]));
    }
    TextTable text(align, keys);
    text.header(std::move(header));
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
        if (std::find(table.rules.begin(), table.rules.end(), r) != table.rules.end()) text.rule();
        std::vector<std::string> cells;
        cells.reserve(shown.size());
        for (const std::size_t c : shown)
            cells.push_back(shortened(cell_text(table.columns[c], table.rows[r][c]), kLongestText));
        text.row(std::move(cells));
    }
    return text.text(width);
}

std::string csv_of(const analysis::ResultTable& table) {
    const std::vector<std::size_t> shown = columns_of(table, analysis::in_csv);
    std::vector<Column> columns;
    columns.reserve(shown.size());
    for (const std::size_t c : shown) columns.push_back({std::string(table.columns[c].key)});
    std::vector<std::vector<store::Cell>> rows;
    for (const std::vector<store::Cell>& row : table.rows) {
        rows.emplace_back();
        for (const std::size_t c : shown) rows.back().push_back(row[c]);
    }
    return rows_csv(columns, rows);
}

Json json_of(const store::Cell& cell) {
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

Json json_row(const std::vector<analysis::ResultColumn>& columns, const std::vector<store::Cell>& cells) {
    Json json = Json::object();
    for (std::size_t c = 0; c < columns.size(); ++c) {
        if ((columns[c].shown & analysis::in_json) != 0)
            json[std::string(columns[c].key)] = json_of(cells[c]);
    }
    return json;
}

Json json_of(const analysis::ResultTable& table) {
    Json rows = Json::array();
    for (const std::vector<store::Cell>& row : table.rows) rows.push_back(json_row(table.columns, row));
    return rows;
}

std::string rows_csv(const std::vector<Column>& columns, const std::vector<std::vector<store::Cell>>& rows) {
    std::string result;
    const auto add_line = [&](const auto& cells, const auto& text_of) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (i > 0) result += ',';
            result += text_of(cells[i]);
        }
        result += '\n';
    };
    add_line(columns, [](const Column& column) { return schema::csv_field(column.name); });
    for (const std::vector<store::Cell>& row : rows) add_line(row, csv_cell);
    return result;
}

std::string render_rows(const std::vector<Column>& columns, const std::vector<std::vector<store::Cell>>& rows,
                        Format format) {
    return format == Format::table  ? rows_table(columns, rows)
           : format == Format::json ? rows_json(columns, rows)
                                    : rows_csv(columns, rows);
}

std::string render_check(const std::string& file, const std::vector<std::string>& faults,
                         const std::vector<std::string>& notes, Format format) {
    switch (format) {
        case Format::json:
            return json_line(
                {{"file", file}, {"whole", faults.empty()}, {"faults", faults}, {"notes", notes}});
        case Format::csv: {
            std::vector<std::vector<store::Cell>> rows;
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

}  // namespace shardscope::traces::report
