// Batched inserts: rows are bound into one statement for many rows, which is several times as fast as one
// statement per row. A value that is the same in every row is written into the SQL and never bound.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {

class BatchInsert {
  public:
    struct Target {
        std::string_view column;
        std::string_view constant = {};  // SQL of a value that all rows share; empty: each row has its own
    };
    BatchInsert(Database& database, std::string_view table, const std::vector<Target>& targets,
                std::string_view verb = "INSERT");

    // The values of one row, in the order of the targets without a constant, followed by end_row().
    BatchInsert& integer(std::int64_t value);
    BatchInsert& id(std::int64_t value) { return value < 0 ? null() : integer(value); }  // negative: NULL
    BatchInsert& real(double value);
    BatchInsert& text(std::string_view value);
    BatchInsert& null();
    void end_row();

    // Writes the rows of a batch that is not full yet.
    void flush();

  private:
    struct Value {
        ValueType type = ValueType::null;
        std::int64_t integer = 0;
        double real = 0;
        std::string text;
    };
    void write(Statement& statement, std::size_t first, std::size_t count);
    Value& next();

    std::size_t columns_ = 0;
    std::vector<Value> values_;  // values of rows that are not written yet; texts keep their capacity
    std::size_t used_ = 0;
    Statement many_, one_;
};

}  // namespace shardscope::traces
