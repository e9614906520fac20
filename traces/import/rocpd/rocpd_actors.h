// The processes, threads and GPUs of a rocpd database: each process is a rank. Internal to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/import/rocpd/rocpd_tables.h"
#include "traces/store/sink.h"

namespace shardscope::traces::importer {

struct RocpdProcess {
    std::string host;
    std::int64_t pid = 0, global_tid = 0;
    int rank = 0;
    std::int64_t correlation = 0;  // added to the process's correlation ids
    std::vector<RocpdKey> agents;  // the GPUs that it used, in the order of their first use
};

class RocpdActors {
  public:
    // Where a device event belongs.
    struct DevicePlace {
        int device = 0, stream = 0;
        std::int64_t global_pid = 0, correlation = 0;
    };

    // Reads them and adds the processes and threads to `sink`. `name`: the file's name in messages. Throws
    // StoreError if the file has no process.
    RocpdActors(RocpdTables& tables, const std::string& name, store::EventSink& sink, int first_rank);

    // The process whose id is in column 1 of an event; null (and counted) if the file does not list it.
    RocpdProcess* process_of(const store::Statement& row);
    // The thread whose id is in column `tid`; if the file does not list it, the process's first one.
    std::int64_t thread_of(const RocpdProcess& process, const store::Statement& row, int tid) const;
    bool is_gpu(const RocpdKey& agent) const;
    // The index of the agent among the process's devices; empty for a CPU.
    std::optional<std::size_t> nth_device(RocpdProcess& process, const RocpdKey& agent) const;
    // Reads the given columns of an event: its agent, stream and stack.
    std::optional<DevicePlace> place(const store::Statement& row, int agent, int stream, int stack);

    // Adds the ranks and their GPUs to `sink`, once all events are read.
    void add_ranks(store::EventSink& sink) const;
    // Events whose process the file does not list.
    std::int64_t orphans() const { return orphans_; }

  private:
    struct Agent {
        bool is_gpu = false;
        int index = 0;
        std::string name, chip;
    };

    void read_processes(const std::string& name, store::EventSink& sink, int first_rank);
    void read_agents();

    RocpdTables& tables_;
    std::map<RocpdKey, RocpdProcess> processes_;
    std::map<RocpdKey, std::int64_t> threads_;
    std::map<RocpdKey, Agent> agents_;
    std::int64_t orphans_ = 0;
};

}  // namespace shardscope::traces::importer
