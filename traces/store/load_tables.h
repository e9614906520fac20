// Reads the tables of a trace database into a sink. Internal to the store.
#pragma once

#include "traces/store/column_sink.h"
#include "traces/store/loader.h"
#include "traces/store/sqlite.h"

namespace shardscope::traces {

// Tables and columns that are absent read as "no data". Throws StoreError: damaged, cancelled.
void load_tables(Database& database, ColumnSink& sink, LoadProgress* progress);

}  // namespace shardscope::traces
