// Reads the tables of a trace database into a sink. Internal to the store.
#pragma once

#include "traces/store/columns/column_sink.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

// Absent tables and columns are read as "no data". Throws StoreError (damaged, cancelled).
void load_tables(Database& database, ColumnSink& sink, LoadProgress* progress);

}  // namespace shardscope::traces::store
