// Small jobs, and helpers with which tests read their Plans.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <unistd.h>

#include "trainer/job/job.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::testing {

inline job::Job mlp_job(int layers, int width, int batch, int ranks) {
    job::Job job;
    job.run.steps = 5;
    job.run.ranks = ranks;
    job.run.workers = 2;
    job.model.layers = layers;
    job.model.width = width;
    job.data.batch = batch;
    return job;
}

// A text to learn, in a file that is removed with the object.
class SampleText {
  public:
    SampleText()
        : path_(std::filesystem::temp_directory_path() / ("shardscope-text-" + std::to_string(getpid()))) {
        std::ofstream out(path_);
        for (int i = 0; i < 200; ++i)
            out << "line " << i << " of a text in which each line resembles the last\n";
    }
    ~SampleText() { std::filesystem::remove(path_); }
    SampleText(const SampleText&) = delete;
    SampleText& operator=(const SampleText&) = delete;
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

inline job::Job gpt_job(const SampleText& text, int batch, int ranks) {
    job::Job job = mlp_job(2, 32, batch, ranks);
    job.model.type = job::ModelType::gpt;
    job.model.heads = 2;
    job.model.context = 16;
    job.data.type = job::DataType::text;
    job.data.path = text.path();
    job.optimizer.type = job::OptimizerType::adamw;
    return job;
}

inline job::Job with_wrap(job::Job job, const std::string& wrap) {
    job.parallel.mode = job::ParallelMode::fsdp;
    job.fsdp.wrap = job::parse_wrap(wrap);
    return job;
}

inline job::Job with_mode(job::Job job, job::ParallelMode mode) {
    job.parallel.mode = mode;
    return job;
}

inline job::Job with_strategy(job::Job job, job::ShardingStrategy strategy, int shard_group = 0) {
    job.fsdp.sharding_strategy = strategy;
    job.fsdp.shard_group = shard_group;
    return job;
}

inline const plan::Plan& steady(const sharding::Program& program) {
    return program.step(program.warm_up_steps());
}

struct Count {
    std::int64_t count = 0, bytes = 0;
    bool operator==(const Count&) const = default;
};

// Collectives of a steady step, counted by operation and group.
inline std::map<std::pair<plan::Operation, plan::Group>, Count> collectives(
    const sharding::Program& program) {
    std::map<std::pair<plan::Operation, plan::Group>, Count> counts;
    for (const plan::Op& op : steady(program).ops) {
        if (op.kind != plan::OpKind::collective) continue;
        Count& entry = counts[{op.collective().operation, op.collective().group}];
        ++entry.count;
        entry.bytes += op.bytes;
    }
    return counts;
}

// Host order of a Plan: AG all_gather, RS reduce_scatter, AR all_reduce, f forward kernels, r recomputed
// ones, g gradient kernels, and frees of gathered parameters; units by number.
inline std::string host_order(const plan::Plan& plan) {
    std::string out, last;
    const auto say = [&](const std::string& word) {
        if (word != last) out += (out.empty() ? "" : " ") + word;
        last = word;
    };
    for (const plan::Op& op : plan.ops) {
        const std::string unit = std::to_string(op.unit);
        if (op.kind == plan::OpKind::collective) {
            if (op.collective().operation == plan::Operation::all_gather) say("AG" + unit);
            if (op.collective().operation == plan::Operation::reduce_scatter) say("RS" + unit);
            if (op.collective().operation == plan::Operation::all_reduce) say("AR" + unit);
        }
        if (op.kind == plan::OpKind::kernel && op.kernel().kernel == plan::Kernel::linear_forward)
            say((op.phase == plan::Phase::recompute ? "r" : "f") + unit);
        if (op.kind == plan::OpKind::kernel && op.kernel().kernel == plan::Kernel::linear_backward_weight)
            say("g" + unit);
        if (op.kind == plan::OpKind::free &&
            plan.buffers[static_cast<std::size_t>(op.args[0].buffer)].category ==
                plan::MemoryCategory::unsharded_parameters) {
            say("free" + unit);
        }
    }
    return out;
}

inline std::int64_t peak_of(const job::Job& job) {
    return sharding::Program(job).predict().peak.bytes;
}

inline std::int64_t at_peak(const plan::MemoryPeak& peak, plan::MemoryCategory category) {
    return peak.at_peak[static_cast<std::size_t>(category)];
}

inline job::Job served(job::Job job, int workers, int servers, std::int64_t staleness) {
    job.parallel.mode = job::ParallelMode::server;
    job.parallel.servers = servers;
    job.train.staleness = staleness;
    job.run.ranks = workers + servers;
    return job;
}

}  // namespace shardscope::trainer::testing
