// Inserts of whole arrays: rows wait as the structs that they came in, and one statement
// (INSERT … SELECT from a virtual table whose cursor walks the array) writes them all. Nothing is bound and
// no value is copied on the way. What remains is SQLite's own work (four fifths of the time: it asks for each
// value and builds the record), so that what counts is to ask for few: constants are written into the
// statement, and columns that are NULL in a whole batch are left out.
// For tables with many rows; BatchInsert is for the others. Internal to the store.
//
// Source of the virtual table's interface: sqlite.org/vtab.html.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/store/sqlite/sqlite.h"

struct sqlite3_context;
struct sqlite3_module;

namespace shardscope::traces {

// The value of one column of one row, on its way into SQLite. A cell that nobody sets is NULL.
class SqlValue {
  public:
    explicit SqlValue(sqlite3_context* context) : context_(context) {}
    void integer(std::int64_t value) const;
    void real(double value) const;
    void text(std::string_view value) const;  // must live as long as the row
    void blob(std::string_view value) const;  // likewise

  private:
    sqlite3_context* context_;
};

struct RowColumn {
    std::string_view name;
    void (*get)(SqlValue cell, const void* row) = nullptr;  // null: `constant` in every row
    std::string_view constant = {};                         // SQL
    bool rare = false;                                      // NULL in most rows: left out where it is in all
};

// Columns of a table that is fed with `Row`s. `Get` is a member, or a function of the row.
template <typename Row>
struct ColumnOf {
    template <auto Get>
    static constexpr RowColumn integer(std::string_view name) {
        return {name, [](SqlValue cell, const void* row) {
                    cell.integer(static_cast<std::int64_t>(std::invoke(Get, *static_cast<const Row*>(row))));
                }};
    }
    // NULL where it is negative.
    template <auto Get>
    static constexpr RowColumn id(std::string_view name) {
        return {name, [](SqlValue cell, const void* row) {
                    const auto value =
                        static_cast<std::int64_t>(std::invoke(Get, *static_cast<const Row*>(row)));
                    if (value >= 0) cell.integer(value);
                }};
    }
    // NULL where a std::optional is empty.
    template <auto Get>
    static constexpr RowColumn optional(std::string_view name) {
        return {name, [](SqlValue cell, const void* row) {
                    const auto& value = std::invoke(Get, *static_cast<const Row*>(row));
                    if (value) cell.integer(static_cast<std::int64_t>(*value));
                }};
    }
    template <auto Get>
    static constexpr RowColumn real(std::string_view name) {
        return {name, [](SqlValue cell, const void* row) {
                    cell.real(static_cast<double>(std::invoke(Get, *static_cast<const Row*>(row))));
                }};
    }
    template <auto Get>
    static constexpr RowColumn text(std::string_view name) {
        return {name, [](SqlValue cell, const void* row) {
                    cell.text(std::invoke(Get, *static_cast<const Row*>(row)));
                }};
    }
    // Sets the cell itself.
    template <auto Set>
    static constexpr RowColumn any(std::string_view name) {
        return {name, [](SqlValue cell, const void* row) { Set(cell, *static_cast<const Row*>(row)); }};
    }
    static constexpr RowColumn constant(std::string_view name, std::string_view sql) {
        return {name, nullptr, sql};
    }
};
constexpr RowColumn rare(RowColumn column) {
    column.rare = true;
    return column;
}

// A virtual table over an array of rows of any type. It exists for this connection, as a table of that name
// with those of the columns that are not constant.
class RowFeed {
  public:
    RowFeed(Database& database, std::string name, std::span<const RowColumn> columns, std::size_t row_size);
    ~RowFeed();
    RowFeed(const RowFeed&) = delete;
    RowFeed& operator=(const RowFeed&) = delete;

    // Runs a statement that reads the table, over these rows.
    void run(Statement& statement, const void* rows, std::size_t count);

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
};

// Of the virtual table `feed` into a table of the schema, whose other columns become NULL, and so do the rare
// ones unless `all`.
std::string insert_sql(std::string_view table, std::span<const RowColumn> columns, std::string_view feed,
                       bool all);

template <typename Row>
class RowInsert {
  public:
    using Predicate = bool (*)(const Row&);
    // `has_rare`: whether a row has a value in any of the rare columns; needed where there are such.
    RowInsert(Database& database, const std::string& table, std::span<const RowColumn> columns,
              Predicate has_rare = nullptr)
        : rows_(kRows),
          has_rare_(has_rare),
          feed_(database, "rows_of_" + table, columns, sizeof(Row)),
          all_(database, insert_sql(table, columns, "rows_of_" + table, true)),
          plain_(database, insert_sql(table, columns, "rows_of_" + table, has_rare == nullptr)) {}

    // The place of the next row, with the values of an earlier one.
    Row& next() {
        if (used_ == kRows) flush();
        return rows_[used_++];
    }
    void add(const Row& row) { next() = row; }
    void flush() {
        const std::size_t waiting = used_;
        used_ = 0;
        if (waiting == 0) return;
        const bool plain =
            has_rare_ == nullptr || std::none_of(rows_.data(), rows_.data() + waiting, has_rare_);
        feed_.run(plain ? plain_ : all_, rows_.data(), waiting);
    }

  private:
    static constexpr std::size_t kRows = 512;  // in the second level cache; more gain nothing
    std::vector<Row> rows_;                    // texts keep their capacity
    std::size_t used_ = 0;
    Predicate has_rare_;
    RowFeed feed_;
    Statement all_, plain_;
};

}  // namespace shardscope::traces
