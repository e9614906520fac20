// The pids that rows carry. Processes of several pid namespaces (containers) may have the same pid; in a
// recording each process has its own: its pid if that is free, else a number above the largest pid of Linux.
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace shardscope::profiler {

class RowPids {
  public:
    // The same for all record files of one process (a process that called exec has another).
    std::int64_t of(std::uint64_t pid_namespace, std::int64_t pid) {
        const auto [known, is_new] = pids_.try_emplace({pid_namespace, pid}, pid);
        if (is_new && !used_.insert(pid).second) used_.insert(known->second = next_++);
        return known->second;
    }
    bool knows(std::uint64_t pid_namespace, std::int64_t pid) const {
        return pids_.count({pid_namespace, pid}) != 0;
    }
    std::int64_t processes() const { return static_cast<std::int64_t>(pids_.size()); }

  private:
    static constexpr std::int64_t kLargestPid = std::int64_t{1} << 22;  // PID_MAX_LIMIT; ids have 24 bits

    std::map<std::pair<std::uint64_t, std::int64_t>, std::int64_t> pids_;
    std::set<std::int64_t> used_;
    std::int64_t next_ = kLargestPid + 1;
};

}  // namespace shardscope::profiler
