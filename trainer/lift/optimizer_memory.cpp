#include "trainer/lift/optimizer_memory.h"

#include <algorithm>
#include <cmath>

namespace shardscope::trainer::lift {

namespace {

constexpr double kMostBuffers = 4.5;  // of the largest parameter's size; PyTorch's optimizers need up to four

struct Local {
    double largest = 0, all = 0;  // bytes
};

// The parts of the parameters that a rank updates. One of FSDP1's flat shards holds most of its parameters
// whole.
Local local_parameters(const LiftedStep& step, const job::Job& job) {
    const bool shards = job.parallel.mode == job::ParallelMode::fsdp &&
                        job.fsdp.sharding_strategy != job::ShardingStrategy::no_shard;
    const double ranks = !shards ? 1 : job.fsdp.shard_group > 0 ? job.fsdp.shard_group : job.run.ranks;
    const bool each = shards && job.fsdp.layout == job::FsdpLayout::fsdp2;
    Local local;
    for (const LiftedParameter& parameter : step.parameters) {
        if (!parameter.trained) continue;
        const double bytes = static_cast<double>(parameter.elements) * sizeof(float);
        local.largest = std::max(local.largest, each ? bytes / ranks : bytes);
        local.all += bytes / ranks;
    }
    local.largest = std::min(local.largest, local.all);
    return local;
}

}  // namespace

OptimizerMemory::OptimizerMemory(std::int64_t rise, const LiftedStep& step, const job::Job& job,
                                 bool together) {
    const Local local = local_parameters(step, job);
    if (rise <= 0 || local.largest <= 0) return;
    all_ = together || static_cast<double>(rise) > kMostBuffers * local.largest;
    share_ = static_cast<double>(rise) / (all_ ? local.all : local.largest);
}

std::int64_t OptimizerMemory::of(const LiftedStep& step, const job::Job& job) const {
    if (share_ == 0) return 0;
    const Local local = local_parameters(step, job);
    return std::llround(share_ * (all_ ? local.all : local.largest));
}

}  // namespace shardscope::trainer::lift
