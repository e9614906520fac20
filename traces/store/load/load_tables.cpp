// One scan for each table.
#include "traces/store/load/load_tables.h"

#include "traces/store/load/load_source.h"

namespace shardscope::traces::store {

void load_tables(Database& database, ColumnSink& sink, LoadProgress* progress, const TableParts& parts) {
    LoadSource source(database, sink, progress, parts);
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

void load_small_tables(Database& database, ColumnSink& sink, Trace& trace, LoadProgress* progress) {
    LoadSource source(database, sink, progress, {});
    source.load_strings();
    load_facts(source);
    load_model(source);
    // Not from the file of columns: whoever wrote it may have inferred places where the rows have none.
    source.scan_rows<schema::RankRow>([&](const schema::RankRow& row) {
        const RankIndex rank = trace.rank_of_number(row.rank);
        for (std::size_t axis = 0; rank.known() && axis < schema::kMeshAxes.size(); ++axis)
            trace.ranks[rank.at()].place[axis] = row.*schema::kMeshAxes[axis].place;
    });
    Trace::each_kind([&]<typename Row>(Row*) { source.add_rows<Row>(); });
}

}  // namespace shardscope::traces::store
