// NCCL's kernels and NCCL's calls, joined to rows of SHARD_COLLECTIVES, for traces in which nobody wrote such
// rows: recordings of other programs, and exports of Nsight Systems that got our tables.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "traces/schema/rows.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {

// Ties each kernel of NCCL to the call that launched it: by its launch (correlation id, thread, time) to the
// NVTX range around it, and by that range's payload to a communicator and to bytes. In a group the kernels of
// one kind of operation belong to the group's calls of that kind, in order; one kernel for several calls of
// one communicator carries them all.
//
// The operations' numbers are NCCL's own (SHARD_NCCL_OPERATIONS, counted for each kind of operation) where
// the profiler plugin told them for a whole communicator; else places in the order of issue, and -1 where the
// ranks disagree, and for sends and receives.
//
// What cannot be told is left out and counted in DIAGNOSTIC_EVENT: no row holds a guess. Nothing happens
// where SHARD_COLLECTIVES has rows or there is no kernel of NCCL. `database` is writable and has our tables;
// what is written is written whole or not at all. Throws StoreError.
void join_nccl_collectives(Database& database);

// The same without writing: of an export that stays as it is.
struct NcclCollectives {
    std::vector<CollectiveRow> rows;
    std::vector<std::pair<std::int64_t, std::int64_t>> times;  // of each row's kernel: start and end, ns
    std::vector<DiagnosticRow> notes;                          // what could not be told, and why
};
NcclCollectives find_nccl_collectives(Database& database);

}  // namespace shardscope::traces
