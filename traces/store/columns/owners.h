// The ranks and host threads to which rows refer, and their indexes in the trace. Internal to the store; used
// while the columns of a trace are built.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/store/columns/pending_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

// The process of a serialized thread.
constexpr std::int64_t pid_of(std::int64_t global_tid) {
    return global_tid & ~std::int64_t{0xFFFFFF};
}

// Throws StoreError if a 16-bit column cannot index so many.
void check_size(std::size_t size, const char* what, const Trace& trace);

// Throws StoreError if there are more rows of a kind than their numbers have bits for: 29 in the viewer's
// lanes, where 3 more hold the kind, and 31 in the columns that point to them.
inline constexpr std::size_t kRowsAtMost = (std::size_t{1} << 29) - 1;
void check_rows(std::size_t rows, const char* what, const Trace& trace);

// Ranks by number and by device. Creates the ranks that rows refer to without a description.
class RankLookup {
  public:
    RankLookup(const PendingRows& rows, Trace& trace);  // fills Trace::ranks

    RankIndex of_number(int number) const { return by_number_.at(number); }
    // The rank of a known device: that of the device in that process, else the process's only rank, which
    // then uses several devices, else any rank with that device.
    RankIndex of_device(int device, std::int64_t pid) const;
    bool knows_device(int device, std::int64_t pid) const {
        return by_device_.contains(device) || of_pid(pid).known();
    }
    // The stream's number within the rank (device_streams.h).
    int stream_of(int device, std::int64_t pid, int stream) const;
    // The rank of a process that has only one.
    RankIndex of_pid(std::int64_t pid) const {
        return by_pid_.count(pid) == 1 ? by_pid_.find(pid)->second : RankIndex();
    }

  private:
    void find_further_devices(const PendingRows& rows);

    std::unordered_map<int, RankIndex> by_number_;
    std::map<int, RankIndex> by_device_;  // the first rank of each
    std::map<std::pair<int, std::int64_t>, RankIndex> by_place_;
    std::multimap<std::int64_t, RankIndex> by_pid_;
    // Devices without a rank of their own: their index among the devices of the process, from 1.
    std::map<std::pair<int, std::int64_t>, std::size_t> further_;
};

// Host threads: all active ones, and the named threads of a rank.
class ThreadLookup {
  public:
    ThreadLookup(PendingRows& rows, const RankLookup& ranks, Trace& trace);

    // Assigns a thread whose rank is unknown to the rank on whose device it launches most. `call_thread`:
    // slots by call.
    void settle_by_launches(const std::vector<std::uint32_t>& call_thread, const DeviceEvents& device);
    // Fills Trace::threads: by rank, those without a rank last, then by id.
    void finish(Trace& trace);

    // The column of thread indexes for slots (PendingRows::threads).
    std::vector<std::uint16_t> operator()(const std::vector<std::uint32_t>& slots) const;
    // -1 for a thread without events.
    int find(std::int64_t tid) const {
        const auto it = by_id_.find(tid);
        return it != by_id_.end() ? static_cast<int>(it->second) : -1;
    }

  private:
    void settle(std::int64_t tid, RankIndex rank);

    std::vector<HostThread> threads_;  // by slot
    std::unordered_map<std::int64_t, std::size_t> slots_;
    std::vector<std::uint16_t> index_;  // by slot
    std::unordered_map<std::int64_t, std::uint16_t> by_id_;
};

}  // namespace shardscope::traces::store
