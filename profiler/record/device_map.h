// The ids of CUDA devices in a trace. CUDA numbers devices in each process (and each process may see
// others), but a trace has one device per rank, or per process that has none: a device's id there is the
// rank's number if it is the first device of a process with a rank, else the next free number. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace shardscope::profiler {

class DeviceMap {
  public:
    // Ids that ranks may claim later are not given to others: call this for every rank as it is found.
    void reserve_rank(int rank) { ranks_.insert(rank); }

    // The id of the device that CUDA numbers `cuda_device` in the process. `rank`: the process's; -1: none.
    int id(std::int64_t pid, int cuda_device, int rank) {
        const auto known = ids_.find({pid, cuda_device});
        if (known != ids_.end()) return known->second;
        const bool is_first = pids_.insert(pid).second;
        int id = rank;
        if (rank < 0 || !is_first || used_.count(rank) != 0) {
            for (id = 0; used_.count(id) != 0 || ranks_.count(id) != 0;) ++id;
        }
        used_.insert(id);
        ids_.emplace(std::make_pair(pid, cuda_device), id);
        return id;
    }

  private:
    std::map<std::pair<std::int64_t, int>, int> ids_;
    std::set<std::int64_t> pids_;
    std::set<int> used_, ranks_;
};

}  // namespace shardscope::profiler
