// Joins NCCL's kernels and calls to rows of SHARD_COLLECTIVES, for traces without such rows: recordings of
// other programs, and exports of Nsight Systems to which our tables were added.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "traces/schema/rows.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

// Finds the call that launched each NCCL kernel: its launch (correlation id, thread, time) leads to the NVTX
// range around it, and that range's payload to a communicator and to bytes. In a group the kernels of one
// kind of operation belong to the group's calls of that kind, in order; one kernel for several calls of one
// communicator carries them all.
//
// The operations' numbers are NCCL's own (SHARD_NCCL_OPERATIONS, counted for each kind of operation) if
// the profiler plugin reported them for a whole communicator; else positions in the order of issue, and -1
// if the ranks disagree, and for sends and receives.
//
// Kernels that cannot be attributed are omitted and counted in DIAGNOSTIC_EVENT: no row contains a guess.
// Does nothing if SHARD_COLLECTIVES has rows or there is no NCCL kernel. `database` is writable and has our
// tables; either everything is written or nothing. Throws StoreError.
void join_nccl_collectives(Database& database);

// The same without writing, for an export that is not modified.
struct NcclCollectives {
    std::vector<schema::CollectiveRow> rows;
    std::vector<std::pair<std::int64_t, std::int64_t>> times;  // start and end of each row's kernel, ns
    std::vector<schema::DiagnosticRow> notes;                  // what could not be attributed, and why
};
NcclCollectives find_nccl_collectives(Database& database);

}  // namespace shardscope::traces::store
