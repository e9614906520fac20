#include "traces/store/sqlite/query.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <string_view>

#include <fmt/core.h>
#include <sqlite3.h>

#include "traces/schema/schema.h"
#include "traces/schema/text.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/sql_functions.h"

namespace shardscope::traces::store {

namespace {

// ATTACH is how SQL could reach (or create) another file; fts3_tokenizer() reveals addresses of code.
int authorize(void*, int action, const char*, const char* name, const char*, const char*) {
    if (action == SQLITE_FUNCTION && name != nullptr && sqlite3_stricmp(name, "fts3_tokenizer") == 0)
        return SQLITE_DENY;
    return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

// Writing statements form one transaction, which is committed only if all of them succeed.
int authorize_writing(void* unused, int action, const char* a, const char* b, const char* c, const char* d) {
    return action == SQLITE_TRANSACTION || action == SQLITE_SAVEPOINT ? SQLITE_DENY
                                                                      : authorize(unused, action, a, b, c, d);
}

// A statement starts at its first word.
std::size_t first_word(std::string_view sql, std::size_t offset) {
    while (offset < sql.size() && std::isspace(static_cast<unsigned char>(sql[offset])) != 0) ++offset;
    return offset;
}

std::string place(std::string_view sql, std::size_t offset) {
    offset = first_word(sql, offset);
    const std::string_view before = sql.substr(0, std::min(offset, sql.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto newline = before.rfind('\n');
    const std::size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
    return fmt::format("line {}, column {}", line, column);
}

// Whether the message says that a table is missing, and it is a table or view of our schema.
bool lacks_our_table(std::string_view message) {
    constexpr std::string_view kNoTable = "no such table: ";
    if (!message.starts_with(kNoTable)) return false;
    const std::string_view name = message.substr(kNoTable.size());
    const auto is_it = [&](const auto& known) { return schema::same_but_for_case(known.name, name); };
    const auto has = [&](const auto& all) { return std::any_of(all.begin(), all.end(), is_it); };
    return has(schema::views()) || has(schema::nsight_tables()) || has(schema::shard_tables());
}

[[noreturn]] void refuse_sql(sqlite3* handle, std::string_view sql, std::size_t statement_start,
                             std::string_view names_listed) {
    std::size_t offset = first_word(sql, statement_start);
#if SQLITE_VERSION_NUMBER >= 3038000
    if (const int at = sqlite3_error_offset(handle); at >= 0)
        offset = statement_start + static_cast<std::size_t>(at);
#endif
    const std::string_view message = sqlite3_errmsg(handle);
    if (message == "incomplete input") offset = sql.find_last_not_of(" \t\r\n;") + 1;
    const int code = sqlite3_errcode(handle);
    if (code == SQLITE_AUTH)
        throw QueryError(
            "SQL: ATTACH, VACUUM INTO, fts3_tokenizer and, with --write, BEGIN and COMMIT are not allowed; a "
            "query works on one trace, and what it writes is one transaction",
            offset);
    const std::string text = fmt::format("SQL, {}: {}; {}", place(sql, offset), message, names_listed);
    if (lacks_our_table(message)) throw MissingTable(text, offset);
    throw QueryError(text, offset);
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

// The values in the comment at the head of the SQL: "-- :top = 10".
std::map<std::string, std::string> stated_values(std::string_view sql) {
    std::map<std::string, std::string> values;
    constexpr std::string_view kBlanks = " \t\r";
    const auto trimmed = [&](std::string_view text) {
        const auto first = text.find_first_not_of(kBlanks);
        if (first == std::string_view::npos) return std::string_view();
        return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
    };
    while (!sql.empty()) {
        const auto newline = sql.find('\n');
        std::string_view line = trimmed(sql.substr(0, newline));
        sql = newline == std::string_view::npos ? std::string_view() : sql.substr(newline + 1);
        if (line.empty()) continue;
        if (!line.starts_with("--")) break;
        line = trimmed(line.substr(2));
        const auto equals = line.find('=');
        if (!line.starts_with(':') || equals == std::string_view::npos) continue;
        values[std::string(trimmed(line.substr(1, equals - 1)))] = trimmed(line.substr(equals + 1));
    }
    return values;
}

// Converts a text to a number if all of it is one.
QueryValue as_value(const std::string& text) {
    if (const auto whole = schema::number_of<std::int64_t>(text)) return *whole;
    if (const auto real = schema::number_of<double>(text)) return *real;
    return text;
}

// Binds values to the parameters of the statements.
class Parameters {
  public:
    Parameters(std::string_view sql, const std::map<std::string, std::string>& given) {
        for (const auto& [name, text] : stated_values(sql)) values_[name] = as_value(text);
        for (const auto& [name, text] : given) values_[name] = as_value(text);
    }

    void bind(Statement& statement, std::string_view sql, std::size_t statement_start) {
        for (int i = 1; i <= statement.parameter_count(); ++i) {
            const std::string sign_and_name = statement.parameter_name(i);
            if (sign_and_name.empty() || sign_and_name[0] == '?') {
                throw QueryError(
                    fmt::format("SQL, {}: a parameter has no name; write :name in place of {}",
                                place(sql, statement_start), sign_and_name.empty() ? "?" : sign_and_name),
                    first_word(sql, statement_start));
            }
            const std::string name = sign_and_name.substr(1);
            const auto value = values_.find(name);
            if (value == values_.end()) {
                throw QueryError(
                    fmt::format("SQL, {}: the parameter {} has no value; give --param {}=VALUE or "
                                "begin the SQL with a line -- :{} = VALUE",
                                place(sql, statement_start), sign_and_name, name, name),
                    first_word(sql, statement_start));
            }
            used_.insert(name);
            std::visit([&](const auto& v) { bind_one(statement, i, v); }, value->second);
        }
    }

    // Refuses a value that no parameter uses, which is likely a mistake.
    void check_used(const std::map<std::string, std::string>& given) const {
        for (const auto& [name, text] : given) {
            if (!used_.contains(name)) {
                throw QueryError(
                    fmt::format("the SQL has no parameter :{}; check the name of --param", name));
            }
        }
    }

  private:
    static void bind_one(Statement& statement, int index, std::monostate) { statement.bind_null(index); }
    static void bind_one(Statement& statement, int index, bool value) {
        statement.bind(index, std::int64_t{value});
    }
    static void bind_one(Statement& statement, int index, std::int64_t value) {
        statement.bind(index, value);
    }
    static void bind_one(Statement& statement, int index, double value) { statement.bind(index, value); }
    static void bind_one(Statement& statement, int index, const std::string& value) {
        statement.bind(index, std::string_view(value));
    }

    std::map<std::string, QueryValue> values_;
    std::set<std::string> used_;
};

// Checks from time to time whether the query should stop.
class StopWatch {
  public:
    StopWatch(Database& database, const QueryOptions& options) : database_(database), options_(options) {
        if (options.time_limit) end_ = std::chrono::steady_clock::now() + *options.time_limit;
        constexpr int kInstructionsBetweenLooks = 10000;
        sqlite3_progress_handler(database.handle(), kInstructionsBetweenLooks, look, this);
    }
    ~StopWatch() { sqlite3_progress_handler(database_.handle(), 0, nullptr, nullptr); }
    StopWatch(const StopWatch&) = delete;
    StopWatch& operator=(const StopWatch&) = delete;

    bool cancelled() const { return options_.cancel != nullptr && *options_.cancel; }
    bool late() const { return end_ && std::chrono::steady_clock::now() >= *end_; }

  private:
    static int look(void* watch) {
        const auto* self = static_cast<const StopWatch*>(watch);
        return self->cancelled() || self->late() ? 1 : 0;
    }

    Database& database_;
    const QueryOptions& options_;
    std::optional<std::chrono::steady_clock::time_point> end_;
};

std::size_t bytes_of(const std::vector<QueryValue>& row) {
    std::size_t bytes = sizeof(std::vector<QueryValue>) + row.size() * sizeof(QueryValue);
    for (const QueryValue& value : row) {
        if (const auto* text = std::get_if<std::string>(&value)) bytes += text->size();
    }
    return bytes;
}

QueryResult rows_of(Database& database, Statement& statement, const StopWatch& watch,
                    const QueryOptions& options) {
    QueryResult result;
    for (int c = 0; c < statement.column_count(); ++c) result.columns.push_back(statement.column_name(c));
    std::size_t bytes = 0;
    try {
        while (statement.step()) {
            if ((options.max_rows > 0 && result.rows.size() >= options.max_rows) ||
                (options.max_bytes > 0 && bytes >= options.max_bytes)) {
                result.cut = true;
                break;
            }
            std::vector<QueryValue>& row = result.rows.emplace_back();
            for (int c = 0; c < statement.column_count(); ++c) row.push_back(value_of(statement, c));
            if (options.max_bytes > 0) bytes += bytes_of(row);
        }
    } catch (const StoreError&) {
        switch (sqlite3_errcode(database.handle()) & 0xFF) {
            case SQLITE_INTERRUPT:
                if (watch.cancelled()) throw QueryStopped("the query was stopped");
                throw QueryStopped(
                    "the query was stopped at its time limit; ask for less or raise the limit "
                    "(--time-limit)");
            case SQLITE_TOOBIG:
                throw QueryError("SQL: a text or blob of the result is too long; ask for a part of it");
            case SQLITE_ERROR:  // a function was called with invalid values
                throw QueryError(fmt::format("SQL: {}", sqlite3_errmsg(database.handle())));
            case SQLITE_CONSTRAINT:
                throw QueryError(
                    fmt::format("SQL: {}; nothing was changed", sqlite3_errmsg(database.handle())));
            default:
                throw;
        }
    }
    return result;
}

// For writing: opens the file itself, which must be ours and unchanged.
Database open_to_write(const std::string& path) {
    const int version = [&] {
        Database database = open_trace(path);  // throws an error that says what is wrong with it
        return schema_version(database);
    }();
    if (version != schema::kSchemaVersion) {
        throw QueryError(fmt::format("{} has schema version {} and this tool writes {}; import it first",
                                     path, version, schema::kSchemaVersion));
    }
    Database database(path, Database::Mode::read_write);
    // SQLite's internal tables in the file (PRAGMA writable_schema) must not be changed.
    sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    database.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;");
    return database;
}

}  // namespace

bool is_sql_keyword(std::string_view word) {
    return sqlite3_keyword_check(word.data(), static_cast<int>(word.size())) != 0;
}

std::vector<QueryResult> run_query(const std::string& path, const std::string& sql,
                                   const QueryOptions& options) {
    Database database = options.write ? open_to_write(path) : open_trace(path);
    add_sql_functions(database);
    if (options.write) database.execute("BEGIN IMMEDIATE");
    sqlite3_set_authorizer(database.handle(), options.write ? authorize_writing : authorize, nullptr);
    if (options.max_value_bytes > 0)
        sqlite3_limit(database.handle(), SQLITE_LIMIT_LENGTH, options.max_value_bytes);
    const StopWatch watch(database, options);
    Parameters parameters(sql, options.parameters);
    std::vector<QueryResult> results;
    std::size_t at = 0;
    while (at < sql.size()) {
        std::size_t used = 0;
        auto statement = Statement::next(database, std::string_view(sql).substr(at), used);
        if (!statement) {
            if (sqlite3_errcode(database.handle()) != SQLITE_OK)
                refuse_sql(database.handle(), sql, at, options.names_listed);
            at += std::max<std::size_t>(used, 1);  // a comment or white space
            continue;
        }
        if (!options.write && !statement->reads_only()) {
            throw QueryError(
                fmt::format("SQL, {}: the statement writes, and a query only reads; give --write to change "
                            "the file",
                            place(sql, at)),
                first_word(sql, at));
        }
        parameters.bind(*statement, sql, at);
        QueryResult result = rows_of(database, *statement, watch, options);
        if (!result.columns.empty()) results.push_back(std::move(result));
        at += used;
    }
    parameters.check_used(options.parameters);
    if (options.write) {
        sqlite3_set_authorizer(database.handle(), nullptr, nullptr);
        database.execute("COMMIT");
    }
    return results;
}

}  // namespace shardscope::traces::store
