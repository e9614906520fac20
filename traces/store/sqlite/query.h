// Runs a user's SQL on a trace: only on this file, and read-only unless the user says otherwise. The
// functions of sql_functions.h are available.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/store/cell.h"
#include "traces/store/error.h"

namespace shardscope::traces::store {

// The SQL is wrong; the message says where.
class QueryError : public StoreError {
  public:
    explicit QueryError(const std::string& message, std::optional<std::size_t> at = {})
        : StoreError(message), offset(at) {}
    std::optional<std::size_t> offset;  // the place in the SQL, in bytes; none: it has no single place
};

// The SQL names a table or view of our schema that the file lacks, as exports of other tools do.
class MissingTable : public QueryError {
  public:
    using QueryError::QueryError;
};

// The query was stopped, by `cancel` or by its time limit.
class QueryStopped : public StoreError {
  public:
    using StoreError::StoreError;
};

// NULL, integer, real number, text (or the bytes of a blob).
using QueryValue = Cell;

struct QueryResult {
    std::vector<std::string> columns;
    std::vector<std::vector<QueryValue>> rows;
    bool cut = false;  // whether there are more rows than were requested
};

struct QueryOptions {
    std::map<std::string, std::string> parameters;  // for :name, @name and $name; "5" binds as a number
    bool write = false;  // whether statements may write: either all of them take effect, or none
    const std::atomic<bool>* cancel = nullptr;  // set by another thread or a signal handler
    std::optional<std::chrono::nanoseconds> time_limit = {};
    // The most that one result may hold; 0: no limit. The rest is not computed, and QueryResult::cut is set.
    std::size_t max_rows = 0, max_bytes = 0;
    // The longest single text or blob; 0: SQLite's own limit.
    int max_value_bytes = 0;
    // Ends the message about wrong SQL: where the user finds the names.
    std::string_view names_listed = "docs/schema.md lists the tables and views";
};

// Whether SQL reserves the word, ignoring case.
bool is_sql_keyword(std::string_view word);

// One result for each statement that has columns; statements are separated by semicolons. Throws StoreError
// if the file cannot be read, QueryError if the SQL cannot be run (it is wrong, it would write, a parameter
// has no value or a value has no parameter), QueryStopped.
//
// A comment at the head of the SQL may give parameters default values:
//     -- :top = 10
std::vector<QueryResult> run_query(const std::string& path, const std::string& sql,
                                   const QueryOptions& options = {});

}  // namespace shardscope::traces::store
