#include "traces/import/rocpd/rocpd_actors.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/device_streams.h"
#include "traces/store/error.h"

namespace shardscope::traces::importer {

namespace {
constexpr std::int64_t kProcessDistance = std::int64_t{1} << 40;  // between two processes' correlation ids
}

RocpdActors::RocpdActors(RocpdTables& tables, const std::string& name, store::EventSink& sink, int first_rank)
    : tables_(tables) {
    read_processes(name, sink, first_rank);
    read_agents();
}

void RocpdActors::read_processes(const std::string& name, store::EventSink& sink, int first_rank) {
    store::Statement rows(
        tables_.database(),
        "SELECT p.guid, p.id, p.pid, p.command, n.hostname FROM rocpd_info_process p LEFT JOIN "
        "rocpd_info_node n ON n.id = p.nid AND n.guid = p.guid ORDER BY p.pid, p.guid, p.id");
    while (rows.step()) {
        RocpdProcess process;
        const int nth = static_cast<int>(processes_.size());
        process.host = rows.text(4);
        process.pid = rows.integer(2);
        process.rank = first_rank + nth;
        process.correlation = nth * kProcessDistance;
        process.global_tid = schema::global_tid(process.pid, process.pid);
        sink.add(schema::ProcessRow{schema::global_pid(process.pid), process.pid, std::string(rows.text(3))});
        processes_.emplace(tables_.key(rows, 1), std::move(process));
    }
    if (processes_.empty())
        throw store::StoreError(fmt::format("{}: no process in rocpd_info_process; record it again", name));
    store::Statement threads(tables_.database(), "SELECT guid, id, pid, tid, name FROM rocpd_info_thread");
    while (threads.step()) {
        const auto process = processes_.find(tables_.key(threads, 2));
        if (process == processes_.end()) continue;
        const std::int64_t tid = schema::global_tid(process->second.pid, threads.integer(3));
        threads_.emplace(tables_.key(threads, 1), tid);
        sink.add(schema::ThreadRow{tid, std::string(threads.text(4)), process->second.rank});
    }
}

void RocpdActors::read_agents() {
    store::Statement rows(
        tables_.database(),
        "SELECT guid, id, type, type_index, COALESCE(NULLIF(product_name, ''), model_name), name "
        "FROM rocpd_info_agent");
    while (rows.step())
        agents_[tables_.key(rows, 1)] = Agent{rows.text(2) == "GPU", static_cast<int>(rows.integer(3)),
                                              std::string(rows.text(4)), std::string(rows.text(5))};
}

RocpdProcess* RocpdActors::process_of(const store::Statement& row) {
    const auto process = processes_.find(tables_.key(row, 1));
    if (process == processes_.end()) ++orphans_;
    return process == processes_.end() ? nullptr : &process->second;
}

std::int64_t RocpdActors::thread_of(const RocpdProcess& process, const store::Statement& row, int tid) const {
    const auto thread = threads_.find(tables_.key(row, tid));
    return thread == threads_.end() ? process.global_tid : thread->second;
}

bool RocpdActors::is_gpu(const RocpdKey& agent) const {
    const auto known = agents_.find(agent);
    return known != agents_.end() && known->second.is_gpu;
}

std::optional<std::size_t> RocpdActors::nth_device(RocpdProcess& process, const RocpdKey& agent) const {
    const auto known = agents_.find(agent);
    if (known != agents_.end() && !known->second.is_gpu) return std::nullopt;
    const auto it = std::find(process.agents.begin(), process.agents.end(), agent);
    const auto nth = static_cast<std::size_t>(it - process.agents.begin());
    if (it == process.agents.end()) process.agents.push_back(agent);
    return nth;
}

std::optional<RocpdActors::DevicePlace> RocpdActors::place(const store::Statement& row, int agent, int stream,
                                                           int stack) {
    RocpdProcess* process = process_of(row);
    if (process == nullptr) return std::nullopt;
    const std::size_t nth = nth_device(*process, tables_.key(row, agent)).value_or(0);
    const auto number = std::clamp<std::int64_t>(row.integer_or(stream, 0), 0, store::kStreamsOfDevice - 1);
    return DevicePlace{process->rank, store::stream_of_device(nth, static_cast<int>(number)),
                       schema::global_pid(process->pid),
                       row.is_null(stack) ? 0 : process->correlation + row.integer(stack)};
}

void RocpdActors::add_ranks(store::EventSink& sink) const {
    for (const auto& [id, process] : processes_) {
        schema::RankRow rank{.rank = process.rank,
                             .device = process.rank,
                             .global_pid = schema::global_pid(process.pid),
                             .global_tid = process.global_tid,
                             .host = process.host,
                             .device_name = {}};
        const auto agent = process.agents.empty() ? agents_.end() : agents_.find(process.agents.front());
        if (agent != agents_.end()) {
            rank.device_name = agent->second.name;
            schema::GpuRow gpu;
            gpu.device = rank.device;
            gpu.cuda_device = agent->second.index;
            gpu.pid = process.pid;
            gpu.name = agent->second.name;
            gpu.chip = agent->second.chip;
            sink.add(gpu);
        }
        sink.add(rank);
    }
}

}  // namespace shardscope::traces::importer
