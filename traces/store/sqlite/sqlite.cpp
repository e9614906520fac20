#include "traces/store/sqlite/sqlite.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <sqlite3.h>

#include "traces/store/sqlite/no_space.h"

namespace shardscope::traces::store {

namespace {

constexpr int kBusyTimeoutMs = 5000;

// A path as a URI: every character that is not plain is percent-encoded.
std::string to_uri(const std::string& path, std::string_view query) {
    std::string uri = !path.empty() && path[0] != '/' ? "file:./" : "file:";
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                           (byte >= 'A' && byte <= 'Z') || byte == '/' || byte == '.' || byte == '-' ||
                           byte == '_';
        if (plain) {
            uri += c;
        } else {
            fmt::format_to(std::back_inserter(uri), "%{:02X}", byte);
        }
    }
    return uri + std::string(query);
}

}  // namespace

Database::Database(std::string path, Mode mode) : path_(std::move(path)) {
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    flags |= mode == Mode::read_write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(to_uri(path_, mode == Mode::immutable ? "?immutable=1" : "").c_str(),
                                     &handle, flags, nullptr);
    handle_.reset(handle);
    if (code != SQLITE_OK) fail(code, "opening it");
    sqlite3_extended_result_codes(handle, 1);
    sqlite3_busy_timeout(handle, kBusyTimeoutMs);
}

void Database::Close::operator()(sqlite3* handle) const {
    sqlite3_close_v2(handle);
}

void Database::close() {
    handle_.reset();
}

void Database::fail(int code, std::string_view doing) const {
    const int last = errno;  // SQLite does not always keep it for a failed write
    int system = handle_ ? sqlite3_system_errno(handle_.get()) : 0;
    if (system == 0 && code == SQLITE_IOERR_WRITE) system = last;
    switch (code & 0xFF) {
        case SQLITE_FULL:
            throw NoSpaceError(
                fmt::format("{}: the disk is full; free some space or write the trace elsewhere", path_));
        case SQLITE_IOERR:
            if (system == ENOSPC || system == EDQUOT || system == EFBIG) {
                throw NoSpaceError(fmt::format(
                    "{}: there is no space left ({}); free some space or write the trace elsewhere", path_,
                    std::strerror(system)));
            }
            throw StoreError(
                fmt::format("{}: input or output failed while {}{}{}; check the disk and the file's folder",
                            path_, doing, system != 0 ? ": " : "", system != 0 ? std::strerror(system) : ""));
        case SQLITE_CORRUPT:
            throw StoreError(
                fmt::format("{} is damaged or truncated; copy it again from where it was recorded", path_));
        case SQLITE_NOTADB:
            throw StoreError(
                fmt::format("{} is not an SQLite file; give a trace that was written with --trace", path_));
        case SQLITE_CANTOPEN:
            throw StoreError(fmt::format("{} cannot be opened ({}); check the path and its permissions",
                                         path_, system != 0 ? std::strerror(system) : "no reason given"));
        case SQLITE_READONLY:
            throw StoreError(
                fmt::format("{} cannot be written; check the permissions of the file and its folder", path_));
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            throw StoreError(fmt::format("{} is locked by another program; close that and try again", path_));
        case SQLITE_NOMEM:
            throw StoreError(
                fmt::format("{}: out of memory while {}; close other programs and try again", path_, doing));
        default:
            throw StoreError(fmt::format("{}: {} failed: {}; run shardscope-trace check on it", path_, doing,
                                         handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code)));
    }
}

void Database::execute(const std::string& sql) {
    const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) fail(code, "changing it");
}

void Database::attach(const std::string& path, std::string_view name) {
    Statement statement(*this, "ATTACH ?1 AS ?2");
    const std::string uri = to_uri(path, "?mode=ro");
    statement.bind(1, std::string_view(uri));
    statement.bind(2, name);
    statement.run();
}

bool Database::has_table(std::string_view name) {
    Statement statement(*this, "SELECT 1 FROM sqlite_master WHERE name = ?1 AND type IN ('table', 'view')");
    statement.bind(1, name);
    return statement.step();
}

bool Database::has_column(std::string_view table, std::string_view column) {
    Statement statement(*this, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2");
    statement.bind(1, table);
    statement.bind(2, column);
    return statement.step();
}

std::int64_t Database::changes() const {
    return sqlite3_changes(handle_.get());
}

std::int64_t Database::integer(const std::string& sql) {
    Statement statement(*this, sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::string quoted_name(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) {
        if (c == '"') text += c;
        text += c;
    }
    return text + '"';
}

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
    sqlite3_stmt* statement = nullptr;
    const int code =
        sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
    statement_.reset(statement);
    if (code != SQLITE_OK) database.fail(code, "reading it");
}

Statement::Statement(Database& database, sqlite3_stmt* statement)
    : database_(&database), statement_(statement) {}

std::optional<Statement> Statement::next(Database& database, std::string_view sql, std::size_t& used) {
    sqlite3_stmt* statement = nullptr;
    const char* rest = sql.data();
    const int code =
        sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &statement, &rest);
    used = rest != nullptr ? static_cast<std::size_t>(rest - sql.data()) : sql.size();
    if (code != SQLITE_OK || statement == nullptr) return std::nullopt;
    return Statement(database, statement);
}

bool Statement::reads_only() const {
    return sqlite3_stmt_readonly(statement_.get()) != 0;
}

std::string Statement::bound_sql() const {
    const std::unique_ptr<char, decltype(&sqlite3_free)> sql(sqlite3_expanded_sql(statement_.get()),
                                                             sqlite3_free);
    return sql ? sql.get() : "";
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

void Statement::bind(int index, std::int64_t value) {
    sqlite3_bind_int64(statement_.get(), index, value);
}
void Statement::bind(int index, double value) {
    sqlite3_bind_double(statement_.get(), index, value);
}
void Statement::bind(int index, std::string_view value) {
    // An empty view may have null data, which SQLite would take for NULL.
    sqlite3_bind_text64(statement_.get(), index, value.data() != nullptr ? value.data() : "", value.size(),
                        SQLITE_STATIC, SQLITE_UTF8);
}
int Statement::parameter_count() const {
    return sqlite3_bind_parameter_count(statement_.get());
}
std::string Statement::parameter_name(int index) const {
    const char* name = sqlite3_bind_parameter_name(statement_.get(), index);
    return name != nullptr ? name : "";
}
void Statement::bind_null(int index) {
    sqlite3_bind_null(statement_.get(), index);
}
void Statement::bind_blob(int index, std::string_view value) {
    sqlite3_bind_blob64(statement_.get(), index, value.data() != nullptr ? value.data() : "", value.size(),
                        SQLITE_TRANSIENT);
}
void Statement::bind_value(int index, const Statement& row, int column) {
    sqlite3_bind_value(statement_.get(), index, sqlite3_column_value(row.statement_.get(), column));
}

bool Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    database_->fail(code, sqlite3_stmt_readonly(statement_.get()) != 0 ? "reading it" : "writing it");
}

void Statement::run() {
    step();
    reset();
}

void Statement::reset() {
    sqlite3_reset(statement_.get());
}

ValueType Statement::type(int column) const {
    switch (sqlite3_column_type(statement_.get(), column)) {
        case SQLITE_INTEGER:
            return ValueType::integer;
        case SQLITE_FLOAT:
            return ValueType::real;
        case SQLITE_TEXT:
            return ValueType::text;
        case SQLITE_BLOB:
            return ValueType::blob;
        default:
            return ValueType::null;
    }
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}
double Statement::real(int column) const {
    return sqlite3_column_double(statement_.get(), column);
}

std::string_view Statement::text(int column) const {
    const void* data = type(column) == ValueType::blob
                           ? sqlite3_column_blob(statement_.get(), column)
                           : static_cast<const void*>(sqlite3_column_text(statement_.get(), column));
    const int size = sqlite3_column_bytes(statement_.get(), column);
    return data != nullptr ? std::string_view(static_cast<const char*>(data), static_cast<std::size_t>(size))
                           : std::string_view();
}

int Statement::column_count() const {
    return sqlite3_column_count(statement_.get());
}
std::string Statement::column_name(int column) const {
    const char* name = sqlite3_column_name(statement_.get(), column);
    return name != nullptr ? name : "";
}

}  // namespace shardscope::traces::store
