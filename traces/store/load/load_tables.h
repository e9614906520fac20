// Reads the tables of a trace database into a sink. Internal to the store.
#pragma once

#include <cstdint>

#include "traces/store/columns/column_sink.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

// How the large tables of a file that does not change meanwhile are read: on so many threads, each at least
// so many rows of a table.
struct TableParts {
    int threads = 1;
    std::int64_t rows = 1 << 17;  // with fewer, a thread and its connection cost more than they save
};

struct NotInParts {};  // thrown where parts would not give what the whole gives

// Absent tables and columns are read as "no data". Throws StoreError (damaged, cancelled).
void load_tables(Database& database, ColumnSink& sink, LoadProgress* progress, const TableParts& parts = {});

// The same without the tables of events, for a sink that has their columns; `trace` is its trace, whose ranks
// get their places.
void load_small_tables(Database& database, ColumnSink& sink, Trace& trace, LoadProgress* progress);

}  // namespace shardscope::traces::store
