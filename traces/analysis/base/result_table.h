// One description of each number. Each struct of a result's row has a list of fields: key, title, unit,
// meaning and how to get the value. Text tables, JSON and CSV (traces/report/print.h), the viewer's tables
// (viewer/tables/result_model.h) and docs/results.md are made from these lists.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "traces/store/cell.h"

namespace shardscope::traces::analysis {

enum class Unit : std::uint8_t {
    text,
    index,    // a number that identifies something, such as a rank: no separators
    count,    // "1,234"; a mean of counts has two decimals
    number,   // a real number without a unit
    digits6,  // the same with six significant digits
    us,       // microseconds
    ns,       // nanoseconds; a table shows milliseconds
    bytes,    // a table shows MiB
    percent,
    gbps,  // 10^9 bytes per second
};

// Where a column is shown.
enum ShownIn : std::uint8_t {
    in_viewer = 0,  // only in the viewer, which can choose any column
    in_table = 1,
    in_json = 2,
    in_csv = 4,
    in_programs = in_json | in_csv,
    everywhere = in_table | in_programs
};

struct ResultColumn {
    std::string_view key = {};    // of JSON and CSV: "mean_us"
    std::string_view title = {};  // of tables, without the unit: "Mean"
    Unit unit = Unit::text;
    std::string_view meaning = {};  // one sentence
    std::uint8_t shown = everywhere;
    std::int8_t decimals = -1;  // in tables; -1: as usual for the unit
    bool where_known = false;   // shown in a table only if some row has a value other than 0
    bool difference = false;    // in tables with its sign, and "=" where it is exactly 0
    bool whole_title = false;   // the title is the whole header, with its unit
};

// "us", "MiB"; "" for a unit that has no symbol.
std::string_view symbol(Unit unit);
// The title followed by the unit: "Mean (µs)". A title that begins with the unit ("MiB/step") stays as it is.
std::string header_text(const ResultColumn& column);
// The value in the column's unit, formatted: "1,234.5"; "-" if it is unknown or an empty text.
std::string cell_text(const ResultColumn& column, const store::Cell& cell);

template <class Row>
struct Field : ResultColumn {
    store::Cell (*of)(const Row&) = nullptr;
};
template <class Row>
using Fields = std::span<const Field<Row>>;

struct ResultTable {
    std::vector<ResultColumn> columns;
    std::vector<std::vector<store::Cell>> rows;  // a cell for each column
    std::vector<std::size_t> rules;              // rows with a rule above them
};

template <class Value>
store::Cell to_cell(const Value& value) {
    if constexpr (std::is_same_v<Value, bool> || std::is_floating_point_v<Value>) {
        return value;
    } else if constexpr (std::is_integral_v<Value>) {
        return static_cast<std::int64_t>(value);
    } else {
        return std::string(value);
    }
}
template <class Value>
store::Cell to_cell(const std::optional<Value>& value) {
    return value ? to_cell(*value) : store::Cell();
}
// For numbers where 0 means unknown.
template <class Number>
store::Cell known_cell(Number value) {
    return value > 0 ? to_cell(value) : store::Cell();
}
// For texts where an empty one means unknown.
inline store::Cell known_text(const std::string& text) {
    return text.empty() ? store::Cell() : store::Cell(text);
}
inline store::Cell us_cell(double ns) {
    return ns * 1e-3;
}
// For tables: blank if a value does not apply, unlike "-" for an unknown one.
inline store::Cell blank_cell() {
    return std::string(" ");
}

// Common ways to get a value.
template <auto Member, class Row>
store::Cell value_of(const Row& row) {
    return to_cell(row.*Member);
}
template <auto Member, class Row>
store::Cell known_value_of(const Row& row) {
    return known_cell(row.*Member);
}
template <auto Member, class Row>
store::Cell micros_of(const Row& row) {
    return us_cell(static_cast<double>(row.*Member));
}

// For a key whose JSON value is an object or a list: the printer replaces the null by it.
template <class Row>
store::Cell nested(const Row& /*row*/) {
    return {};
}

template <class Row>
void add_cells(std::vector<store::Cell>& cells, Fields<Row> fields, const Row& row) {
    for (const Field<Row>& field : fields) cells.push_back(field.of(row));
}

// A table without rows: the columns `before`, then those of the fields.
template <class Row>
ResultTable empty_table(Fields<Row> fields, std::initializer_list<ResultColumn> before = {}) {
    ResultTable table{before, {}, {}};
    table.columns.insert(table.columns.end(), fields.begin(), fields.end());
    return table;
}

template <class Row, class Rows>
ResultTable result_table(Fields<Row> fields, const Rows& rows) {
    ResultTable table = empty_table(fields);
    for (const Row& row : rows) add_cells(table.rows.emplace_back(), fields, row);
    return table;
}

// Whether a text table has the column: it must be meant for tables and, if it is shown only where known,
// some row must have a value other than 0.
bool shown_in_table(const ResultTable& table, std::size_t column);
// The same table, whose text table omits the columns with these keys.
ResultTable without(ResultTable table, std::initializer_list<std::string_view> keys);

// A column by its key, under its own title or a whole header. If several have the key, the one that is
// shown in tables.
struct ColumnChoice {
    std::string_view key, header = {};
};
// The same rows with these columns alone, in this order, all of them shown in tables.
ResultTable chosen(const ResultTable& table, std::initializer_list<ColumnChoice> choices);

inline constexpr ResultColumn kRankColumn = {"rank", "Rank", Unit::index, "Number of the rank."};

// The rows of all ranks, each preceded by its rank.
template <class Row, class Rank>
ResultTable by_rank(Fields<Row> fields, const std::vector<Rank>& ranks, std::vector<Row> Rank::*rows) {
    ResultTable table = empty_table(fields, {kRankColumn});
    for (const Rank& rank : ranks) {
        for (const Row& row : rank.*rows) {
            table.rows.push_back({std::int64_t{rank.rank}});
            add_cells(table.rows.back(), fields, row);
        }
    }
    return table;
}

}  // namespace shardscope::traces::analysis
