// See result_table.h.
#include "traces/analysis/base/result_table.h"

#include <algorithm>
#include <type_traits>

#include <fmt/core.h>

#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

struct UnitLook {
    std::string_view symbol;
    double of;     // the symbol's unit in the column's unit: 1e6 (ns in a ms)
    int decimals;  // decimals of a real number
};

UnitLook look_of(Unit unit) {
    switch (unit) {
        case Unit::us:
            return {"\u00b5s", 1, 1};
        case Unit::ns:
            return {"ms", 1e6, 3};
        case Unit::bytes:
            return {"MiB", 1 << 20, 2};
        case Unit::percent:
            return {"%", 1, 2};
        case Unit::gbps:
            return {"GB/s", 1, 3};
        case Unit::text:
        case Unit::index:
        case Unit::count:
        case Unit::number:
        case Unit::digits6:
            break;
    }
    return {"", 1, 2};
}

bool is_something(const store::Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole != 0;
    if (const auto* real = std::get_if<double>(&cell)) return *real != 0;
    if (const auto* text = std::get_if<std::string>(&cell)) return !text->empty();
    return !std::holds_alternative<std::monostate>(cell);
}

template <class Number>
std::string digits_of(const ResultColumn& column, Number value) {
    if constexpr (std::is_integral_v<Number>) {
        if (column.unit == Unit::index) return std::to_string(value);
        if (column.unit == Unit::count || column.unit == Unit::number) return store::grouped(value);
    }
    const auto real = static_cast<double>(value);
    if (column.unit == Unit::digits6) return fmt::format("{:.6g}", real);
    const UnitLook look = look_of(column.unit);
    return store::grouped(real / look.of, column.decimals >= 0 ? column.decimals : look.decimals);
}

template <class Number>
std::string number_text(const ResultColumn& column, Number value) {
    if (column.difference && value == 0) return "=";
    const std::string digits = digits_of(column, value);
    // A value that rounds to 0 has no sign.
    const bool plus = column.difference && value > 0 && digits.find_first_of("123456789") != digits.npos;
    return plus ? "+" + digits : digits;
}

}  // namespace

std::string_view symbol(Unit unit) {
    return look_of(unit).symbol;
}

std::string header_text(const ResultColumn& column) {
    const std::string_view unit = symbol(column.unit);
    if (column.whole_title || unit.empty() || column.title.starts_with(unit))
        return std::string(column.title);
    return fmt::format("{} ({})", column.title, unit);
}

std::string cell_text(const ResultColumn& column, const store::Cell& cell) {
    if (const auto* text = std::get_if<std::string>(&cell)) return text->empty() ? "-" : *text;
    if (const auto* yes = std::get_if<bool>(&cell)) return *yes ? "yes" : "no";
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return number_text(column, *whole);
    if (const auto* real = std::get_if<double>(&cell)) return number_text(column, *real);
    return "-";
}

bool shown_in_table(const ResultTable& table, std::size_t column) {
    const ResultColumn& c = table.columns[column];
    if ((c.shown & in_table) == 0) return false;
    return !c.where_known ||
           std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const std::vector<store::Cell>& row) { return is_something(row[column]); });
}

ResultTable without(ResultTable table, std::initializer_list<std::string_view> keys) {
    for (ResultColumn& column : table.columns) {
        if (std::find(keys.begin(), keys.end(), column.key) != keys.end()) column.shown &= ~in_table;
    }
    return table;
}

ResultTable chosen(const ResultTable& table, std::initializer_list<ColumnChoice> choices) {
    ResultTable picked{{}, std::vector<std::vector<store::Cell>>(table.rows.size()), table.rules};
    for (const ColumnChoice& choice : choices) {
        const auto has_key = [&](const ResultColumn& column) { return column.key == choice.key; };
        const auto first = table.columns.begin(), last = table.columns.end();
        auto at = std::find_if(first, last, [&](const ResultColumn& column) {
            return has_key(column) && (column.shown & in_table) != 0;
        });
        if (at == last) at = std::find_if(first, last, has_key);
        if (at == last) continue;
        ResultColumn& column = picked.columns.emplace_back(*at);
        column.shown |= in_table;
        if (!choice.header.empty()) {
            column.title = choice.header;
            column.whole_title = true;
        }
        for (std::size_t r = 0; r < table.rows.size(); ++r)
            picked.rows[r].push_back(table.rows[r][static_cast<std::size_t>(at - first)]);
    }
    return picked;
}

}  // namespace shardscope::traces::analysis
