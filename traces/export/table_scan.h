// One pass over a table of a trace database, whatever schema version wrote it: columns that it lacks are
// NULL. Internal to the library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::exports {

// `"alias.column"` as SQL: the column of the table, or NULL if the table lacks it.
inline std::string column_or_null(store::Database& database, std::string_view table, std::string_view alias,
                                  std::string_view column) {
    return database.has_column(table, column) ? fmt::format("{}.\"{}\"", alias, column) : "NULL";
}

inline std::string columns_or_null(store::Database& database, std::string_view table, std::string_view alias,
                                   const std::vector<std::string_view>& columns) {
    std::string sql;
    for (const std::string_view column : columns)
        sql += (sql.empty() ? "" : ", ") + column_or_null(database, table, alias, column);
    return sql;
}

// Calls `take(row)` for each row. `rest`: SQL after the table's name, such as an ORDER BY; the table is `t`.
template <typename Take>
void scan_table(store::Database& database, std::string_view table,
                const std::vector<std::string_view>& columns, std::string_view rest, Take take) {
    if (!database.has_table(table)) return;
    store::Statement statement(
        database, fmt::format("SELECT {} FROM \"{}\" t {}", columns_or_null(database, table, "t", columns),
                              table, rest));
    while (statement.step()) take(statement);
}

}  // namespace shardscope::traces::exports
