// See table_model.h.
#include "viewer/tables/table_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::tables {
namespace {

std::size_t row_at(const std::vector<std::uint32_t>* order, std::size_t i) {
    return order == nullptr ? i : (*order)[i];
}

// Counts remain whole numbers: 5, not 5.0.
nlohmann::ordered_json exact_json(double number) {
    if (number == std::floor(number) && std::abs(number) <= kExactInteger)
        return static_cast<std::int64_t>(number);
    return number;
}

std::string exact(double number) {
    return std::isfinite(number) ? fmt::format("{}", number) : std::string();
}

}  // namespace

double TableModel::largest(std::size_t column) const {
    double most = 0;
    for (std::size_t row = 0; row < rows(); ++row) {
        const double n = number(row, column);
        if (std::isfinite(n)) most = std::max(most, n);
    }
    return most;
}

void CellTable::add(std::vector<Cell> cells, theme::Color swatch) {
    cells.resize(columns_.size());
    cells_.push_back(std::move(cells));
    swatches_.push_back(swatch);
}

void LazyColumns::add(TableColumn column, Text text) {
    columns_.push_back(std::move(column));
    cells_.push_back({std::move(text), {}, 0});
}

void LazyColumns::add(TableColumn column, int decimals, Number number) {
    columns_.push_back(std::move(column));
    cells_.push_back({{}, std::move(number), decimals});
}

std::string LazyColumns::text(std::size_t row, std::size_t column) const {
    const Cell& cell = cells_[column];
    return cell.text ? cell.text(row) : decimal_cell(cell.number(row), cell.decimals).text;
}

double LazyColumns::number(std::size_t row, std::size_t column) const {
    return cells_[column].number ? cells_[column].number(row) : kNoNumber;
}

CellTable::Cell text_cell(std::string_view text) {
    return {std::string(text), kNoNumber};
}

CellTable::Cell count_cell(std::int64_t value) {
    return {draw::format_count(value), static_cast<double>(value)};
}

CellTable::Cell decimal_cell(double value, int decimals) {
    return std::isfinite(value) ? CellTable::Cell{draw::format_decimal(value, decimals), value} : no_cell();
}

CellTable::Cell us_cell(double us) {
    return decimal_cell(us, 1);
}

CellTable::Cell ns_cell(std::int64_t ns) {
    return us_cell(static_cast<double>(ns) * 1e-3);
}

CellTable::Cell mb_cell(std::int64_t bytes) {
    constexpr std::int64_t kHalfOfTheLast = 5243;  // bytes: 0.005 MiB; less would be written as 0.00
    return {bytes > 0 && bytes < kHalfOfTheLast ? "< 0.01" : draw::format_mb(bytes, false),
            static_cast<double>(bytes) / (1 << 20)};
}

CellTable::Cell percent_cell(double percent) {
    return decimal_cell(percent, 2);
}

CellTable::Cell no_cell() {
    return {"-", kNoNumber};
}

namespace {

template <class Field>
std::string separated(const TableModel& model, const std::vector<std::uint32_t>* order, char between,
                      Field field) {
    std::string text;
    const auto& columns = model.columns();
    for (std::size_t c = 0; c < columns.size(); ++c) {
        if (c) text += between;
        text += field(columns[c].id);
    }
    text += '\n';
    const std::size_t rows = order == nullptr ? model.rows() : order->size();
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t row = row_at(order, i);
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (c) text += between;
            text += columns[c].kind == TableColumn::Kind::number ? exact(model.number(row, c))
                                                                 : field(model.text(row, c));
        }
        text += '\n';
    }
    return text;
}

}  // namespace

std::string table_csv(const TableModel& model, const std::vector<std::uint32_t>* order) {
    return separated(model, order, ',',
                     [](const std::string& text) { return traces::schema::csv_field(text); });
}

std::string table_tsv(const TableModel& model, const std::vector<std::uint32_t>* order) {
    return separated(model, order, '\t', [](std::string text) {
        std::replace_if(
            text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
        return text;
    });
}

std::string table_json(const TableModel& model, const std::vector<std::uint32_t>* order) {
    auto all = nlohmann::ordered_json::array();
    const auto& columns = model.columns();
    const std::size_t rows = order == nullptr ? model.rows() : order->size();
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t row = row_at(order, i);
        auto object = nlohmann::ordered_json::object();
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (columns[c].kind == TableColumn::Kind::text) {
                object[columns[c].id] = model.text(row, c);
            } else if (const double number = model.number(row, c); std::isfinite(number)) {
                object[columns[c].id] = exact_json(number);
            } else {
                object[columns[c].id] = nullptr;
            }
        }
        all.push_back(std::move(object));
    }
    return traces::schema::dump_json(all, 1) + "\n";
}

}  // namespace shardscope::viewer::tables
