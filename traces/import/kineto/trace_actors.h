// Maps the actors of one Chrome trace: processes and threads (numbers or texts) become Nsight's serialized
// ids, devices become ranks. Owns its maps. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "traces/import/json/json_scan.h"
#include "traces/store/sink.h"

namespace shardscope::traces::importer {

// The number of a process or thread: its own, or one assigned to its text.
class ActorNumbers {
  public:
    std::int64_t of(JsonScalar id);

  private:
    std::unordered_map<std::string, std::int64_t> texts_;
};

class TraceActors {
  public:
    // The file belongs to one process and so to one rank, whatever device numbers its events use: kernels
    // have the machine's number of a device, memory events the number that the process sees.
    explicit TraceActors(int rank) : rank_(rank) {}

    void set_rank(int rank) { rank_ = rank; }
    int rank() const { return rank_; }

    std::int64_t number_of(JsonScalar id) { return numbers_.of(id); }

    // The serialized thread of a host event.
    std::int64_t host_thread(JsonScalar pid, JsonScalar tid);
    // Helps to find the rank's main thread: one with a step, else the one with the most ranges.
    void tell_step(std::int64_t global_tid) { step_threads_.emplace_back(global_tid); }

    struct Place {
        int device = 0, stream = 0, rank = 0;
    };
    // The place of work on a device. The rank's device is the first one that ran work.
    Place device_place(int device, int stream);
    int rank_of_device(int device) const;
    // The index of a device among those with memory events, in the order of appearance. If nothing runs on
    // a device, the rank's device is the first of them.
    std::size_t memory_place(int device);

    // From metadata events; names of threads without events are dropped. The last name of a thread counts: a
    // thread has its parent's name until it sets its own (Linux: prctl(2), PR_SET_NAME).
    void name_process(JsonScalar pid, std::string_view name);
    void name_thread(JsonScalar pid, JsonScalar tid, std::string_view name);

    // A trace that we exported lists its ranks: `pid` and `threads` are as in its events.
    void know_rank(const schema::RankRow& row, std::int64_t pid, std::int64_t thread,
                   const std::vector<std::int64_t>& threads);
    // The serialized thread for the pid and tid of the trace.
    std::int64_t thread_of(std::int64_t pid, std::int64_t tid) { return thread(pid, tid); }
    // The rank that a host thread works for.
    int rank_of_thread(std::int64_t global_tid) const;
    // The serialized process that drives a device, 0 unknown.
    std::int64_t process_of_device(int device) const;

    // Writes the facts of all processes, threads and ranks that were seen.
    void write(store::EventSink& sink, const std::map<int, schema::GpuRow>& devices, const std::string& host);

    std::uint64_t surplus_threads() const { return surplus_; }
    std::uint64_t moved_devices() const { return moved_devices_; }

  private:
    struct Process {
        std::int64_t number = 0;  // of 24 bits
        std::int64_t next_free = 0xFFFFFF;
        std::unordered_map<std::int64_t, std::int64_t> threads;  // tid in the trace -> number of 24 bits
        std::unordered_set<std::int64_t> taken;
    };
    struct Thread {
        std::int64_t pid = 0, tid = 0;  // as in the trace
        std::uint64_t events = 0;
    };

    Process& process(std::int64_t pid);
    std::int64_t thread(std::int64_t pid, std::int64_t tid);
    std::int64_t new_thread(std::int64_t pid, std::int64_t tid);
    std::int64_t main_thread() const;
    void add_device(int device, int rank);
    std::size_t place_of_device(int device) const;  // index in devices_, or its size if missing

    int rank_ = 0;
    std::vector<int> memory_devices_;
    ActorNumbers numbers_;
    std::unordered_map<std::int64_t, Process> processes_;
    std::unordered_set<std::int64_t> taken_pids_;
    std::int64_t next_free_pid_ = 0xFFFFFF;
    std::map<std::int64_t, Thread> threads_;  // by serialized id
    struct Latest {
        std::string pid, tid;
        std::int64_t id = 0;
        Thread* thread = nullptr;
    };
    Latest latest_[4];
    std::size_t next_latest_ = 0;
    std::vector<std::int64_t> step_threads_;
    std::vector<std::pair<int, int>> devices_;             // (device, rank) in the order of appearance
    std::unordered_map<int, std::size_t> places_of_more_;  // of the devices after the first few
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;
    std::map<std::int64_t, std::string> process_names_;
    std::vector<schema::RankRow> known_;  // as listed in a trace that we exported
    std::unordered_map<std::int64_t, int> rank_of_thread_, rank_of_process_;
    std::uint64_t surplus_ = 0, moved_devices_ = 0;
};

}  // namespace shardscope::traces::importer
