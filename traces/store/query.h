// Runs a person's SQL on a trace: read-only, on this file alone.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "traces/store/error.h"

namespace shardscope::traces {

// The SQL is wrong; the text says where.
class QueryError : public StoreError {
  public:
    using StoreError::StoreError;
};

// NULL, whole number, real number, text (or the bytes of a blob).
using QueryValue = std::variant<std::monostate, std::int64_t, double, std::string>;

struct QueryResult {
    std::vector<std::string> columns;
    std::vector<std::vector<QueryValue>> rows;
};

// One result for each statement that has columns; statements are separated by semicolons. Throws StoreError
// where the file cannot be read, QueryError where the SQL cannot be run (wrong, or it would write).
std::vector<QueryResult> run_query(const std::string& path, const std::string& sql);

}  // namespace shardscope::traces
