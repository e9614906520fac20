#include "traces/store/query.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <sqlite3.h>

#include "traces/store/open.h"

namespace shardscope::traces {

namespace {

// The file is open read-only already; attaching is how SQL could reach (or make) another one.
int authorize(void*, int action, const char*, const char*, const char*, const char*) {
    return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

std::string place(std::string_view sql, std::size_t offset) {
    const std::string_view before = sql.substr(0, std::min(offset, sql.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto newline = before.rfind('\n');
    const std::size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
    return fmt::format("line {}, column {}", line, column);
}

QueryError wrong_sql(sqlite3* handle, std::string_view sql, std::size_t statement_start) {
    std::size_t offset = statement_start;
#if SQLITE_VERSION_NUMBER >= 3038000
    if (const int at = sqlite3_error_offset(handle); at >= 0) offset += static_cast<std::size_t>(at);
#endif
    const int code = sqlite3_errcode(handle);
    if (code == SQLITE_AUTH)
        return QueryError("SQL: ATTACH and VACUUM INTO are not allowed; a query reads one trace");
    return QueryError(fmt::format("SQL, {}: {}; docs/schema.md lists the tables and views",
                                  place(sql, offset), sqlite3_errmsg(handle)));
}

QueryValue value_of(const Statement& row, int column) {
    switch (row.type(column)) {
        case ValueType::null:
            return std::monostate{};
        case ValueType::integer:
            return row.integer(column);
        case ValueType::real:
            return row.real(column);
        default:
            return std::string(row.text(column));
    }
}

}  // namespace

std::vector<QueryResult> run_query(const std::string& path, const std::string& sql) {
    Database database = open_trace(path);
    sqlite3_set_authorizer(database.handle(), authorize, nullptr);
    std::vector<QueryResult> results;
    std::size_t at = 0;
    while (at < sql.size()) {
        std::size_t used = 0;
        auto statement = Statement::next(database, std::string_view(sql).substr(at), used);
        if (!statement) {
            if (sqlite3_errcode(database.handle()) != SQLITE_OK) throw wrong_sql(database.handle(), sql, at);
            at += std::max<std::size_t>(used, 1);  // a comment or white space
            continue;
        }
        if (!statement->reads_only()) {
            throw QueryError(
                fmt::format("SQL, {}: the statement writes, and a query only reads; work on a copy with "
                            "sqlite3 to change it",
                            place(sql, at)));
        }
        QueryResult result;
        for (int c = 0; c < statement->column_count(); ++c)
            result.columns.push_back(statement->column_name(c));
        while (statement->step()) {
            std::vector<QueryValue>& row = result.rows.emplace_back();
            for (int c = 0; c < statement->column_count(); ++c) row.push_back(value_of(*statement, c));
        }
        if (!result.columns.empty()) results.push_back(std::move(result));
        at += used;
    }
    return results;
}

}  // namespace shardscope::traces
