// NCCL's kernels in a trace, with their launches and ranks. Internal to the store. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "traces/schema/enums.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

inline constexpr std::int64_t kUnknownNumber = -1;

struct NcclKernel {
    std::int64_t start = 0, end = 0, device = 0, global_pid = 0, correlation = 0;
    schema::Operation operation = schema::Operation::other;  // from its name; `other` can carry any operation
    std::int64_t launch_tid = kUnknownNumber, launched = 0;
};

// The kernels in order of their starts, with their launches if recorded.
std::vector<NcclKernel> read_nccl_kernels(Database& database);

// The rank of a device and process: from SHARD_RANKS, else as numbered by the loader.
class DeviceRanks {
  public:
    explicit DeviceRanks(Database& database);
    int of(std::int64_t device, std::int64_t global_pid) const;  // -1: none

  private:
    void count_processes();

    std::map<std::pair<std::int64_t, std::int64_t>, int> ranks_;
    std::map<std::int64_t, int> by_device_, by_process_;  // -1: several
};

}  // namespace shardscope::traces::store
