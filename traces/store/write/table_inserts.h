// The batched inserts of the tables that a DatabaseWriter fills and that stay small: which columns it gives,
// and the constants of the rest. Those with many rows: event_inserts.h. Internal to the store.
#pragma once

#include "traces/store/sqlite/insert.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {

struct TableInserts {
    explicit TableInserts(Database& db);
    void flush();

    BatchInsert strings, payload_schemas, payload_entries, payload_enums, payload_values, scopes, gpus,
        cuda_devices, cuda_contexts, cuda_streams, processes, thread_names, diagnostics, run, ranks, threads,
        streams, steps, losses, modules, units, communicators, nccl_operations, predictions, parts, clocks,
        stops, plans;
};

}  // namespace shardscope::traces
