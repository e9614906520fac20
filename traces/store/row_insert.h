// Inserts of whole arrays: rows wait as the structs that they came in, and one statement
// (INSERT … SELECT from a virtual table whose cursor walks the array) writes them all. Nothing is bound and
// no value is copied on the way, so that it is the fastest way into SQLite that keeps its types and checks.
// For tables with many rows; BatchInsert is for the others. Internal to the store.
//
// Source of the virtual table's interface: sqlite.org/vtab.html.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/store/sqlite.h"

struct sqlite3_context;
struct sqlite3_module;

namespace shardscope::traces {

// The value of one column of one row, on its way into SQLite. A cell that nobody sets is NULL.
class Cell {
  public:
    explicit Cell(sqlite3_context* context) : context_(context) {}
    void integer(std::int64_t value) const;
    void real(double value) const;
    void text(std::string_view value) const;  // must live as long as the row
    void blob(std::string_view value) const;  // likewise

  private:
    sqlite3_context* context_;
};

struct RowColumn {
    std::string_view name;
    void (*get)(Cell cell, const void* row) = nullptr;  // null: `constant` in every row
    std::string_view constant = {};                     // SQL
};

// Columns of a table that is fed with `Row`s. `Get` is a member, or a function of the row.
template <typename Row>
struct ColumnOf {
    template <auto Get>
    static constexpr RowColumn integer(std::string_view name) {
        return {name, [](Cell cell, const void* row) {
                    cell.integer(static_cast<std::int64_t>(std::invoke(Get, *static_cast<const Row*>(row))));
                }};
    }
    // NULL where it is negative.
    template <auto Get>
    static constexpr RowColumn id(std::string_view name) {
        return {name, [](Cell cell, const void* row) {
                    const auto value =
                        static_cast<std::int64_t>(std::invoke(Get, *static_cast<const Row*>(row)));
                    if (value >= 0) cell.integer(value);
                }};
    }
    // NULL where a std::optional is empty.
    template <auto Get>
    static constexpr RowColumn optional(std::string_view name) {
        return {name, [](Cell cell, const void* row) {
                    const auto& value = std::invoke(Get, *static_cast<const Row*>(row));
                    if (value) cell.integer(static_cast<std::int64_t>(*value));
                }};
    }
    template <auto Get>
    static constexpr RowColumn real(std::string_view name) {
        return {name, [](Cell cell, const void* row) {
                    cell.real(static_cast<double>(std::invoke(Get, *static_cast<const Row*>(row))));
                }};
    }
    template <auto Get>
    static constexpr RowColumn text(std::string_view name) {
        return {name, [](Cell cell, const void* row) {
                    cell.text(std::invoke(Get, *static_cast<const Row*>(row)));
                }};
    }
    // Sets the cell itself.
    template <auto Set>
    static constexpr RowColumn any(std::string_view name) {
        return {name, [](Cell cell, const void* row) { Set(cell, *static_cast<const Row*>(row)); }};
    }
    static constexpr RowColumn constant(std::string_view name, std::string_view sql) {
        return {name, nullptr, sql};
    }
};

// A virtual table over an array of rows of any type, and the statement that reads it. The table exists for
// this connection under the feed's name.
class RowFeed {
  public:
    // `sql` speaks of `name` as of a table with those of `columns` that are not constant.
    RowFeed(Database& database, std::string name, std::span<const RowColumn> columns, std::size_t row_size,
            std::string_view sql);
    ~RowFeed();
    RowFeed(const RowFeed&) = delete;
    RowFeed& operator=(const RowFeed&) = delete;

    // Runs the statement over these rows.
    void run(const void* rows, std::size_t count);

    // For the virtual table.
    std::string declaration() const;
    const std::vector<RowColumn>& columns() const { return columns_; }
    const std::byte* begin() const { return begin_; }
    const std::byte* end() const { return end_; }
    std::size_t row_size() const { return row_size_; }

  private:
    Database& database_;
    std::string name_;
    std::vector<RowColumn> columns_;  // those that differ from row to row
    std::size_t row_size_;
    const std::byte* begin_ = nullptr;
    const std::byte* end_ = nullptr;
    std::optional<Statement> statement_;
};

// Of the virtual table `feed` into `table`, whose other columns become NULL.
std::string insert_sql(std::string_view table, std::span<const RowColumn> columns, std::string_view feed);

template <typename Row>
class RowInsert {
  public:
    RowInsert(Database& database, const std::string& table, std::span<const RowColumn> columns)
        : rows_(kRows),
          feed_(database, "rows_of_" + table, columns, sizeof(Row),
                insert_sql(table, columns, "rows_of_" + table)) {}

    // The place of the next row, with the values of an earlier one.
    Row& next() {
        if (used_ == kRows) flush();
        return rows_[used_++];
    }
    void add(const Row& row) { next() = row; }
    void flush() {
        const std::size_t waiting = used_;
        used_ = 0;
        if (waiting > 0) feed_.run(rows_.data(), waiting);
    }

  private:
    static constexpr std::size_t kRows = 512;  // in the second level cache; more gain nothing
    std::vector<Row> rows_;                    // texts keep their capacity
    std::size_t used_ = 0;
    RowFeed feed_;
};

}  // namespace shardscope::traces
