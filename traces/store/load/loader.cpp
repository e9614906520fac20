#include "traces/store/load/loader.h"

#include "traces/store/columns/column_sink.h"
#include "traces/store/load/load_tables.h"
#include "traces/store/sqlite/open.h"

namespace shardscope::traces::store {

std::unique_ptr<Trace> load_trace(const std::string& path, LoadProgress* progress) {
    Database database = open_trace(path);
    ColumnSink sink;
    sink.set_path(path);
    sink.set_schema_version(schema_version(database));
    load_tables(database, sink, progress);
    auto trace = sink.take();
    if (progress != nullptr) progress->fraction = 1;
    return trace;
}

}  // namespace shardscope::traces::store
