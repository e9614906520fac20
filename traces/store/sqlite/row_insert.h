// Inserts whole arrays: rows are buffered as structs, and one statement (INSERT … SELECT from a virtual table
// whose cursor walks the array) writes them all. Nothing is bound and no value is copied on the way. SQLite's
// own work remains (four fifths of the time: it asks for each value and builds the record), so it should ask
// for few values: constants are written into the statement, and columns that are NULL in a whole batch are
// omitted. Internal to the store.
//
// Source of the virtual table's interface: sqlite.org/vtab.html.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/schema/schema.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

// A virtual table over an array of rows of any type. It exists only for this connection, under the given
// table's name, and has those of its columns for which the rows have values.
class RowFeed {
  public:
    RowFeed(Database& database, std::string name, std::span<const schema::SchemaColumn> columns,
            std::size_t row_size);
    ~RowFeed();
    RowFeed(const RowFeed&) = delete;
    RowFeed& operator=(const RowFeed&) = delete;

    // Runs a statement that reads the table, over these rows.
    void run(Statement& statement, const void* rows, std::size_t count);

    // Used by the virtual table.
    const std::string& declaration() const { return declaration_; }
    using Get = void (*)(schema::SqlValue cell, const void* row);
    const std::vector<Get>& columns() const { return columns_; }
    const std::byte* begin() const { return begin_; }
    const std::byte* end() const { return end_; }
    std::size_t row_size() const { return row_size_; }

  private:
    Database& database_;
    std::string name_;
    std::string declaration_;
    std::vector<Get> columns_;  // the columns that differ from row to row
    std::size_t row_size_;
    const std::byte* begin_ = nullptr;
    const std::byte* end_ = nullptr;
};

// The statement that inserts the virtual table `feed` into a table of the schema, whose other columns become
// NULL, as do the rare ones unless `all`.
std::string insert_sql(std::string_view table, std::string_view verb, std::string_view feed, bool all);

// Writes rows of a struct into its table (Row::kTable); the schema says which member becomes which column.
template <typename Row>
class RowInsert {
  public:
    explicit RowInsert(Database& database)
        : rows_(kRows),
          columns_(schema::find_table(Row::kTable)->columns),
          feed_(database, kFeed, columns_, sizeof(Row)),
          all_(database, insert_sql(Row::kTable, verb(), kFeed, true)) {
        for (const schema::SchemaColumn& column : columns_) {
            if (column.access.rare) rare_.push_back(column.access.any);
        }
        if (!rare_.empty()) plain_.emplace(database, insert_sql(Row::kTable, verb(), kFeed, false));
    }

    // The slot for the next row, which still has the values of an earlier row.
    Row& next() {
        if (used_ == kRows) flush();
        return rows_[used_++];
    }
    void add(const Row& row) { next() = row; }
    void flush() {
        const std::size_t waiting = used_;
        used_ = 0;
        if (waiting == 0) return;
        const bool plain = plain_ && std::none_of(rare_.begin(), rare_.end(),
                                                  [&](const auto any) { return any(rows_.data(), waiting); });
        feed_.run(plain ? *plain_ : all_, rows_.data(), waiting);
    }

  private:
    static constexpr std::size_t kRows = 512;  // fits into the L2 cache; more gain nothing
    static inline const std::string kFeed = "rows_of_" + std::string(Row::kTable);
    static constexpr std::string_view verb() {
        if constexpr (requires { Row::kVerb; }) {
            return Row::kVerb;
        } else {
            // A refused row ends the whole transaction anyway, so SQLite need not be able to undo this
            // statement alone.
            return "INSERT OR FAIL";
        }
    }

    std::vector<Row> rows_;  // texts keep their capacity
    std::size_t used_ = 0;
    std::span<const schema::SchemaColumn> columns_;
    std::vector<bool (*)(const void*, std::size_t)> rare_;
    RowFeed feed_;
    Statement all_;
    std::optional<Statement> plain_;
};

}  // namespace shardscope::traces::store
