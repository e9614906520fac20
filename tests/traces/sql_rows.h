// Rows of SQL that people write for exports, run on a copy of a trace that may be changed.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {

inline std::string sql_cell(const store::Statement& row, int column) {
    switch (row.type(column)) {
        case store::ValueType::null:
            return "NULL";
        case store::ValueType::integer:
            return std::to_string(row.integer(column));
        case store::ValueType::real:
            return fmt::format("{}", row.real(column));
        default:
            return std::string(row.text(column));
    }
}

// Runs every statement of `sql`; returns the rows of the last one, with cells joined by '|'.
inline std::vector<std::string> sql_rows(store::Database& database, std::string_view sql) {
    std::vector<std::string> rows;
    while (true) {
        std::size_t used = 0;
        auto statement = store::Statement::next(database, sql, used);
        if (!statement) {
            const bool rest = sql.find_first_not_of(" \n\t;") != std::string_view::npos;
            if (rest) throw std::runtime_error("SQL is refused: " + std::string(sql));
            return rows;
        }
        rows.clear();
        while (statement->step()) {
            std::string& row = rows.emplace_back();
            for (int c = 0; c < statement->column_count(); ++c) {
                if (c > 0) row += '|';
                row += sql_cell(*statement, c);
            }
        }
        sql.remove_prefix(used);
    }
}

// SQL for a little-endian number of 8 bytes, `at` bytes from 0 within `blob`.
inline std::string number_at(const std::string& blob, const std::string& at) {
    std::string sum;
    for (int byte = 0; byte < 8; ++byte) {
        const std::string hex = fmt::format("hex(substr({}, ({}) + {}, 1))", blob, at, byte + 1);
        for (const int digit : {1, 2}) {
            sum += fmt::format("{}((instr('0123456789ABCDEF', substr({}, {}, 1)) - 1) << {})",
                               sum.empty() ? "" : " + ", hex, digit, 8 * byte + (digit == 1 ? 4 : 0));
        }
    }
    return "(" + sum + ")";
}

}  // namespace shardscope::traces
