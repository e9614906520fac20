// RAII over SQLite: a connection and its statements. Every failure is a StoreError that names the file, says
// what happened and what to do. A connection and its statements belong to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "traces/store/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace shardscope::traces::store {

class Database {
  public:
    enum class Mode {
        read_only,
        read_write,  // the file must exist
        immutable,   // read-only, and no other process writes: no locks, no files next to it
    };
    Database(std::string path, Mode mode);

    const std::string& path() const { return path_; }
    // For messages: the file of which this is a copy.
    void rename(std::string path) { path_ = std::move(path); }
    sqlite3* handle() const { return handle_.get(); }

    void execute(const std::string& sql);                         // any number of statements, results ignored
    void attach(const std::string& path, std::string_view name);  // read-only, as a second schema
    bool has_table(std::string_view name);
    bool has_column(std::string_view table, std::string_view column);
    std::int64_t integer(const std::string& sql);  // first column of the first row, 0 if there is none

    std::int64_t changes() const;  // rows that the latest statement wrote

    // Throws an error that describes the connection's latest failure: a NoSpaceError if the disk is full.
    [[noreturn]] void fail(int code, std::string_view doing) const;

    // Closes the connection; every Statement must be gone.
    void close();

  private:
    struct Close {
        void operator()(sqlite3* handle) const;
    };
    std::string path_;
    std::unique_ptr<sqlite3, Close> handle_;
};

// Any name quoted for SQL: "name".
std::string quoted_name(std::string_view name);

enum class ValueType { null, integer, real, text, blob };

class Statement {
  public:
    Statement(Database& database, std::string_view sql);
    // The first of several statements; `used` is its length. nullopt if there is none (a comment) or SQLite
    // refuses it (the connection has the error).
    static std::optional<Statement> next(Database& database, std::string_view sql, std::size_t& used);

    int parameter_count() const;
    std::string parameter_name(int index) const;  // from 1, with its sign (":name"); empty for "?"

    void bind(int index, std::int64_t value);  // from 1
    void bind(int index, double value);
    void bind(int index, std::string_view value);  // the text must live until the next step() or reset()
    void bind_null(int index);
    void bind_blob(int index, std::string_view value);  // copied
    // Binds the value of `row` in `column`, of any type; it is copied.
    void bind_value(int index, const Statement& row, int column);

    bool step();  // true if there is a row
    void run();   // one step, no row expected, then reset
    void reset();

    ValueType type(int column) const;  // from 0
    std::int64_t integer(int column) const;
    double real(int column) const;
    std::string_view text(int column) const;  // valid until the next step()
    bool is_null(int column) const { return type(column) == ValueType::null; }
    std::int64_t integer_or(int column, std::int64_t otherwise) const {
        return is_null(column) ? otherwise : integer(column);
    }

    sqlite3_stmt* handle() const { return statement_.get(); }
    bool reads_only() const;
    std::string bound_sql() const;  // its SQL with the bound values
    int column_count() const;
    std::string column_name(int column) const;

  private:
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    Statement(Database& database, sqlite3_stmt* statement);

    Database* database_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace shardscope::traces::store
