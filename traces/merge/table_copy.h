// Copies the rows of one table from a part to the file and maps each value by its column's role. Columns that
// the part lacks (an export, an older schema) are NULL, or 0, "" or [] if they must not be NULL.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/merge/row_ids.h"
#include "traces/merge/work.h"
#include "traces/schema/schema.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::merge {

class TableCopy {
  public:
    // `from` must have the table. `where`: SQL after the table's name, for example "WHERE start < 5".
    TableCopy(store::Database& from, store::Database& to, const schema::SchemaTable& table, RowIds& ids,
              const std::string& where = {});

    // The row's value of a column, unmapped; empty if it is NULL or the part lacks the column.
    std::optional<std::int64_t> integer(std::string_view column) const;
    // The index of a column in the row, -1 if the part lacks it; for integer_at() in a loop.
    int place(std::string_view column) const;
    std::optional<std::int64_t> integer_at(int place) const;

    bool next() { return from_.step(); }
    // Writes the current row, with `time` in place of its own if given (a state that began before).
    void write(std::optional<std::int64_t> time = {});
    // Writes the row unless an equal row was written before. False if one was written that has the same key
    // but other values.
    bool write_once(std::set<std::string>& written);

    // Writes all rows for which `keep` returns true; an empty function keeps all. Returns their number.
    std::int64_t run(WorkWatch& watch, const std::function<bool()>& keep = {});

  private:
    struct Column {
        schema::ColumnRole role = schema::ColumnRole::undecided;
        int at = 0;  // index in the row; the insert's parameter is at + 1
        enum class Absent { null, zero, text, list } absent = Absent::null;
        bool of_moment = false;  // true at the row's own time only
    };
    void bind(const Column& column, std::optional<std::int64_t> time);
    void bind_absent(const Column& column);
    void bind_payload(const Column& column);
    std::int64_t mapped(const Column& column, std::int64_t value);
    std::int64_t row_domain() const;

    std::string_view table_;
    RowIds& ids_;
    store::Database& to_db_;
    std::vector<std::string_view> names_;
    std::vector<Column> columns_;
    int process_ = -1, pid_ = -1, thread_ = -1, domain_ = -1, part_ = -1, hardware_ = -1, machine_ = -1;
    store::Statement from_, to_;
    std::string blob_;
};

}  // namespace shardscope::traces::merge
