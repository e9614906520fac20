// Fills Nsight's table of CUDA memory from ours when a run ends: while the run is recorded each allocation
// is written once, to SHARD_MEMORY.
#pragma once

namespace shardscope::traces::store {

class Database;

// Adds rows to CUDA_GPU_MEMORY_USAGE_EVENTS for the device and pinned memory in SHARD_MEMORY of each device
// without rows there (CUPTI's own are not duplicated). A transaction may be open. Throws StoreError.
void add_memory_usage(Database& database);

}  // namespace shardscope::traces::store
