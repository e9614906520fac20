// Copies tables of a recorded file into a new one, with events in order of time. Needs the memory of a few
// million row numbers, whatever the size of the table. Internal to the store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/totals.h"

namespace shardscope::traces::store {

// The column that a table is sorted by: "start", "time" or "timestamp"; empty for a table without events.
std::string_view time_column(const std::vector<std::string>& columns);

// The result of one pass over a table of events.
struct TableSurvey {
    struct Block {  // of neighbouring rows
        std::int64_t first_row = 0, last_row = 0;
        std::int64_t earliest = 0, latest = 0;
    };
    bool sorted = true;
    std::int64_t rows = 0;
    std::int64_t last_end = 0;  // end of the latest event, or its time
    std::vector<Block> blocks;
    std::vector<std::int64_t> samples;  // times of some rows, evenly chosen
};

// Called regularly with the number of rows processed since the last call; may throw to stop.
using RowsDone = std::function<void(std::int64_t rows)>;

// Reads each row of `schema`.`table` once; rows that are summed by name go to `totals`.
TableSurvey survey_table(Database& database, std::string_view schema, const std::string& table,
                         const std::vector<std::string>& columns, Totals& totals, const RowsDone& done);

// Copies run.`table` to main.`table`, which is empty. `columns`: those that both have.
void copy_table(Database& database, const std::string& table, const std::vector<std::string>& columns);
// The same, sorted by time; rows with equal times keep their order. Sorts about `rows_at_once` in memory.
void copy_sorted(Database& database, const std::string& table, const std::vector<std::string>& columns,
                 const TableSurvey& survey, std::int64_t rows_at_once, const RowsDone& done);

}  // namespace shardscope::traces::store
