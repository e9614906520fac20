// One scan for each table.
#include "traces/store/load/load_tables.h"

#include "traces/store/load/load_source.h"

namespace shardscope::traces::store {

void load_tables(Database& database, ColumnSink& sink, LoadProgress* progress) {
    LoadSource source(database, sink, progress);
    source.load_strings();
    load_facts(source);
    load_threads(source);
    load_model(source);
    source.add_rows<schema::StepRow>();
    source.add_rows<schema::LossRow>();
    load_device_events(source);
    load_host_events(source);
    load_ranks(source);  // in an export they follow from the events
    Trace::each_kind([&]<typename Row>(Row*) { source.add_rows<Row>(); });
    load_nccl_calls(source);
    load_memory(source);
}

}  // namespace shardscope::traces::store
