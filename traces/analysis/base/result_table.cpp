// See result_table.h.
#include "traces/analysis/base/result_table.h"

#include <algorithm>

#include <fmt/core.h>

#include "traces/store/grouped.h"

namespace shardscope::traces {
namespace {

struct UnitLook {
    std::string_view symbol;
    double of;     // size of one unit of the symbol, in the column's unit
    int decimals;  // decimals of a real number
};

UnitLook look_of(Unit unit) {
    switch (unit) {
        case Unit::us:
            return {"us", 1, 1};
        case Unit::ns:
            return {"ms", 1e6, 3};
        case Unit::bytes:
            return {"MB", 1 << 20, 2};
        case Unit::percent:
            return {"%", 1, 2};
        case Unit::gbps:
            return {"GB/s", 1, 3};
        case Unit::text:
        case Unit::index:
        case Unit::count:
        case Unit::number:
            break;
    }
    return {"", 1, 2};
}

bool is_something(const Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole != 0;
    if (const auto* real = std::get_if<double>(&cell)) return *real != 0;
    if (const auto* text = std::get_if<std::string>(&cell)) return !text->empty();
    return !std::holds_alternative<std::monostate>(cell);
}

}  // namespace

std::string_view symbol(Unit unit) {
    return look_of(unit).symbol;
}

std::string header_text(const ResultColumn& column) {
    const std::string_view unit = symbol(column.unit);
    if (unit.empty() || column.title.starts_with(unit)) return std::string(column.title);
    return fmt::format("{} ({})", column.title, unit);
}

std::string cell_text(const ResultColumn& column, const Cell& cell) {
    if (const auto* text = std::get_if<std::string>(&cell)) return text->empty() ? "-" : *text;
    if (const auto* yes = std::get_if<bool>(&cell)) return *yes ? "yes" : "no";
    const UnitLook look = look_of(column.unit);
    const int decimals = column.decimals >= 0 ? column.decimals : look.decimals;
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
        if (column.unit == Unit::index) return std::to_string(*whole);
        if (column.unit == Unit::count || column.unit == Unit::number) return grouped(*whole);
        return grouped(static_cast<double>(*whole) / look.of, decimals);
    }
    if (const auto* real = std::get_if<double>(&cell)) return grouped(*real / look.of, decimals);
    return "-";
}

bool shown_in_table(const ResultTable& table, std::size_t column) {
    const ResultColumn& c = table.columns[column];
    if ((c.shown & in_table) == 0) return false;
    return !c.where_known ||
           std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const std::vector<Cell>& row) { return is_something(row[column]); });
}

ResultTable without(ResultTable table, std::initializer_list<std::string_view> keys) {
    for (ResultColumn& column : table.columns) {
        if (std::find(keys.begin(), keys.end(), column.key) != keys.end()) column.shown &= ~in_table;
    }
    return table;
}

}  // namespace shardscope::traces
