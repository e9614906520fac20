// See result_model.h.
#include "viewer/tables/result_model.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace shardscope::viewer::tables {
namespace {

using traces::analysis::ResultColumn;
using traces::analysis::ResultTable;
using traces::analysis::Unit;

// The size of one displayed unit in the column's unit.
double scale_of(Unit unit) {
    return unit == Unit::bytes ? 1 << 20 : unit == Unit::ns ? 1e6 : 1;
}

CellTable::Cell cell_of(const ResultColumn& column, const traces::store::Cell& cell) {
    const double scale = scale_of(column.unit);
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
        if (column.unit == Unit::bytes) return mb_cell(*whole);
        return {traces::analysis::cell_text(column, cell), static_cast<double>(*whole) / scale};
    }
    if (const auto* real = std::get_if<double>(&cell))
        return {traces::analysis::cell_text(column, cell), std::isfinite(*real) ? *real / scale : kNoNumber};
    return text_cell(traces::analysis::cell_text(column, cell));
}

// The column with that name that tables show, else any with that name.
std::size_t find_column(const ResultTable& result, std::string_view key) {
    std::size_t found = result.columns.size();
    for (std::size_t c = result.columns.size(); c-- > 0;) {
        const ResultColumn& column = result.columns[c];
        if (column.key != key) continue;
        if (found == result.columns.size() || (column.shown & traces::analysis::in_table) != 0) found = c;
    }
    if (found == result.columns.size()) throw std::out_of_range("no column is called " + std::string(key));
    return found;
}

bool is_known(const ResultTable& result, std::size_t column) {
    return std::any_of(result.rows.begin(), result.rows.end(), [column](const auto& row) {
        const auto* text = std::get_if<std::string>(&row[column]);
        return text != nullptr ? !text->empty() : !std::holds_alternative<std::monostate>(row[column]);
    });
}

}  // namespace

std::shared_ptr<CellTable> result_model(const ResultTable& result, std::span<const ColumnLook> looks,
                                        const std::vector<theme::Color>& swatches) {
    std::vector<TableColumn> columns;
    struct Place {
        std::size_t column;
        std::string (*write)(std::string_view);
    };
    std::vector<Place> places;
    for (const ColumnLook& look : looks) {
        const std::size_t c = find_column(result, look.key);
        const ResultColumn& column = result.columns[c];
        if ((column.where_known && !traces::analysis::shown_in_table(result, c)) ||
            (look.where_known && !is_known(result, c)))
            continue;
        places.push_back({c, look.write});
        const bool text = look.as_text || column.unit == Unit::text;
        columns.push_back({.id = std::string(look.id.empty() ? look.key : look.id),
                           .title = std::string(look.title.empty() ? column.title : look.title),
                           .unit = look.unit.empty() ? std::string(traces::analysis::symbol(column.unit))
                                                     : std::string(look.unit),
                           .kind = text ? TableColumn::Kind::text : TableColumn::Kind::number,
                           .width = look.width,
                           .priority = look.priority,
                           .bar = look.bar,
                           .help = std::string(column.meaning),
                           .least = look.least});
    }
    auto table = std::make_shared<CellTable>(std::move(columns));
    for (std::size_t r = 0; r < result.rows.size(); ++r) {
        std::vector<CellTable::Cell> cells;
        for (const auto& [c, write] : places) {
            cells.push_back(cell_of(result.columns[c], result.rows[r][c]));
            if (write != nullptr) cells.back().text = write(cells.back().text);
        }
        table->add(std::move(cells), r < swatches.size() ? swatches[r] : theme::Color{0});
    }
    return table;
}

std::shared_ptr<CellTable> whole_model(const ResultTable& result,
                                       std::initializer_list<std::string_view> bars) {
    constexpr float kText = 6.5F, kNumber = 5.5F, kLetter = 0.6F;
    std::vector<ColumnLook> looks;
    int priority = static_cast<int>(result.columns.size());  // the last are hidden first
    for (std::size_t c = 0; c < result.columns.size(); ++c) {
        const ResultColumn& column = result.columns[c];
        --priority;
        if (!shown_in_table(result, c)) continue;
        const bool bar = std::find(bars.begin(), bars.end(), column.key) != bars.end();
        looks.push_back({.key = column.key,
                         .width = std::max(column.unit == Unit::text ? kText : kNumber,
                                           kLetter * static_cast<float>(column.title.size())),
                         .priority = bar ? priority + static_cast<int>(result.columns.size()) : priority,
                         .bar = bar ? theme::accent() : 0,
                         .where_known = true});
    }
    return result_model(result, looks);
}

}  // namespace shardscope::viewer::tables
