// The batched inserts of all tables that a DatabaseWriter fills: which columns it gives, and the constants of
// the rest. Internal to the store.
#pragma once

#include "traces/store/insert.h"
#include "traces/store/sqlite.h"

namespace shardscope::traces {

struct TableInserts {
    explicit TableInserts(Database& db);
    void flush();

    BatchInsert strings, kernels, memcpys, memsets, runtime, synchronizations, nvtx, memory_usage, gpus,
        cuda_devices, processes, thread_names, diagnostics, run, ranks, threads, streams, steps, losses,
        modules, units, collectives, memory, predictions, parts, counters;
};

}  // namespace shardscope::traces
