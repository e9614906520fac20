// The settings of a job that follow from the launcher of its processes.
#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "trainer/job/loading.h"
#include "trainer/job/strategy.h"

namespace shardscope::trainer::job {

namespace {

bool on_command_line(const Origins& origins, const std::string& key) {
    const auto origin = origins.find(key);
    return origin != origins.end() && origin->second == kCommandLine;
}

bool in_file(const Origins& origins, const std::string& key) {
    return origins.contains(key) && !on_command_line(origins, key);
}

// Sets run.ranks to the `count` processes, one rank each, that `who` requires.
void set_ranks(Job& job, int count, const std::string& who, const Origins& origins) {
    if (job.run.ranks != count && on_command_line(origins, "run.ranks")) {
        throw JobError(
            fmt::format("{}: run.ranks: {} contradicts the {} processes of {}, one rank each; omit the key",
                        kCommandLine, job.run.ranks, count, who));
    }
    if (job.run.ranks != count && in_file(origins, "run.ranks")) {
        job.notes.push_back(fmt::format("{}: run.ranks = {} is ignored: {} has {} processes, one rank each",
                                        origins.at("run.ranks"), job.run.ranks, who, count));
    }
    job.run.ranks = count;
}

}  // namespace

void apply_launcher(Job& job, const Launched& launched, const Origins& origins) {
    int& processes = job.run.processes;
    if (launched.ranks == 0) {
        if (processes > 0) set_ranks(job, processes, "run.processes", origins);
        return;
    }
    if (processes > 0 && processes != launched.ranks) {
        if (on_command_line(origins, "run.processes")) {
            throw JobError(
                fmt::format("{}: run.processes: {} contradicts the {} processes of {}; omit the key",
                            kCommandLine, processes, launched.ranks, launched.launcher));
        }
        job.notes.push_back(fmt::format("{}: run.processes = {} is ignored: {} has started {} processes",
                                        origins.at("run.processes"), processes, launched.launcher,
                                        launched.ranks));
    }
    processes = launched.ranks;
    set_ranks(job, launched.ranks, launched.launcher, origins);
    // As in PyTorch, shards stay within a node.
    FsdpSection& fsdp = job.fsdp;
    if (job.parallel.mode == ParallelMode::fsdp && traits(fsdp.sharding_strategy).in_groups &&
        fsdp.shard_group == 0 && launched.local_ranks < launched.ranks) {
        // A group crosses neither the end of a node nor that of a place of the pipeline.
        fsdp.shard_group =
            std::gcd(std::max(1, launched.local_ranks / (job.parallel.tensor * job.parallel.context)),
                     std::max(1, job.data_ranks()));
    }
}

}  // namespace shardscope::trainer::job
