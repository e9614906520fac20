// The contents of a table, independent of drawing: columns with units, and cells as text and as numbers. One
// model serves the table on the screen, its sorting and filtering, and its export as CSV and JSON. A model is
// immutable: panels make a new one when their data changes. No Dear ImGui; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viewer/theme/theme.h"

namespace shardscope::viewer::tables {

struct TableColumn {
    enum class Kind { text, number };
    std::string id;     // key of the JSON, column of the CSV, part of the item's name: "gather_us"
    std::string title;  // "Gather"
    std::string unit;   // second line of the header: "\u00b5s", "MiB"; empty: none
    Kind kind = Kind::number;
    float width = 6;        // in font sizes; text columns with 0 share the remaining width
    int priority = 10;      // in a narrow window the lowest are hidden first; the first column always stays
    theme::Color bar = 0;   // not 0: a bar of this colour behind the number, scaled by the column's largest
    std::string help = {};  // tooltip of the header: the definition
    double full = 0;        // the value of a whole bar; 0: the column's largest
    float least = 0;        // minimum width, in font sizes, of a text with width 0 or the widest; 0: a few
};

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kExactInteger = 9007199254740992;  // 2^53: doubles hold every whole number up to it

inline constexpr char kMicro[] = "\u00b5s";
inline double us(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3;
}
inline TableColumn text_column(std::string id, std::string title, float width, int priority = 10,
                               std::string help = {}) {
    return {std::move(id), std::move(title), "", TableColumn::Kind::text,
            width,         priority,         0,  std::move(help)};
}
inline TableColumn number_column(std::string id, std::string title, std::string unit, float width,
                                 int priority = 10, theme::Color bar = 0, std::string help = {}) {
    return {std::move(id), std::move(title), std::move(unit), TableColumn::Kind::number, width, priority,
            bar,           std::move(help)};
}

class TableModel {
  public:
    virtual ~TableModel() = default;
    const std::vector<TableColumn>& columns() const { return columns_; }
    virtual std::size_t rows() const = 0;
    // The text as displayed: "1,234.5"; "-" if there is none.
    virtual std::string text(std::size_t row, std::size_t column) const = 0;
    // For number columns: exact, in the column's unit (for sorting, JSON and CSV); kNoNumber if there is
    // none.
    virtual double number(std::size_t row, std::size_t column) const = 0;
    double largest(std::size_t column) const;  // over all rows; 0 if there are no numbers
    // Whether times and sizes may be written in other units than the model's (column_scale.h).
    virtual bool scales() const { return true; }
    // Not 0: a colour square before the first cell.
    virtual theme::Color swatch(std::size_t /*row*/) const { return 0; }
    // Not 0: the number's colour (better or worse) instead of the text's.
    virtual theme::Color ink(std::size_t /*row*/, std::size_t /*column*/) const { return 0; }

  protected:
    std::vector<TableColumn> columns_;
};

// A table of ready cells: for reports of up to about ten thousand rows.
class CellTable final : public TableModel {
  public:
    struct Cell {
        std::string text;
        double number = kNoNumber;
        theme::Color ink = 0;  // not 0: replaces the text's colour
    };
    explicit CellTable(std::vector<TableColumn> columns) { columns_ = std::move(columns); }
    // As many cells as there are columns.
    void add(std::vector<Cell> cells, theme::Color swatch = 0);

    std::size_t rows() const override { return cells_.size(); }
    std::string text(std::size_t row, std::size_t column) const override { return cells_[row][column].text; }
    double number(std::size_t row, std::size_t column) const override { return cells_[row][column].number; }
    theme::Color swatch(std::size_t row) const override { return swatches_[row]; }
    theme::Color ink(std::size_t row, std::size_t column) const override { return cells_[row][column].ink; }

  private:
    std::vector<std::vector<Cell>> cells_;
    std::vector<theme::Color> swatches_;
};

// Columns whose cells are made when they are shown, so that millions of rows cost nothing; each is described
// once. A model passes its text() and number() on to it.
class LazyColumns {
  public:
    using Text = std::function<std::string(std::size_t row)>;
    using Number = std::function<double(std::size_t row)>;

    explicit LazyColumns(std::vector<TableColumn>& columns) : columns_(columns) {}  // those of the model
    void add(TableColumn column, Text text);
    void add(TableColumn column, int decimals, Number number);
    std::string text(std::size_t row, std::size_t column) const;  // "-" for kNoNumber
    double number(std::size_t row, std::size_t column) const;

  private:
    struct Cell {
        Text text;
        Number number;
        int decimals = 0;
    };
    std::vector<TableColumn>& columns_;
    std::vector<Cell> cells_;  // by column
};

// A table of such columns.
class LazyTable : public TableModel {
  public:
    explicit LazyTable(std::size_t rows) : rows_(rows) {}
    std::size_t rows() const override { return rows_; }
    std::string text(std::size_t row, std::size_t column) const override { return cells_.text(row, column); }
    double number(std::size_t row, std::size_t column) const override { return cells_.number(row, column); }

  protected:
    std::size_t rows_;
    LazyColumns cells_{columns_};
};

// Cells with formatted text.
CellTable::Cell text_cell(std::string_view text);
CellTable::Cell count_cell(std::int64_t value);
CellTable::Cell decimal_cell(double value, int decimals);  // "-" if not finite
CellTable::Cell us_cell(double us);                        // one decimal
CellTable::Cell ns_cell(std::int64_t ns);                  // in us
CellTable::Cell mb_cell(std::int64_t bytes);               // in MiB, the number too; "< 0.01" is not 0
CellTable::Cell percent_cell(double percent);              // two decimals, without the sign
CellTable::Cell no_cell();                                 // "-"

// All rows in the model's order, or in `order`: CSV by RFC 4180, except that lines end with one newline, as
// the tools write it; and an array of objects with the columns' ids.
std::string table_csv(const TableModel& model, const std::vector<std::uint32_t>* order = nullptr);
// With tabs between the cells, for spreadsheets; a tab or a line's end in a text becomes a blank.
std::string table_tsv(const TableModel& model, const std::vector<std::uint32_t>* order = nullptr);
std::string table_json(const TableModel& model, const std::vector<std::uint32_t>* order = nullptr);

}  // namespace shardscope::viewer::tables
