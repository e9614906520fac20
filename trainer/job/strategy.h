// The sharding strategies of FSDP, one row each with everything that distinguishes them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "trainer/job/job.h"

namespace shardscope::trainer::job {

struct StrategyTraits {
    std::string_view name;   // PyTorch's
    ShardingStrategy meant;  // what load_job resolves an alias to; ZERO_1 becomes ddp
    int zero_stage = 0;      // of the ZeRO papers: 1 optimizer state, 2 gradients, 3 parameters
    bool shards = false;     // units are gathered and freed
    bool frees_after_forward = false;
    bool in_groups = false;  // ranks shard within groups of fsdp.shard_group
};

// In the order of ShardingStrategy.
inline constexpr std::array<StrategyTraits, 8> kStrategies = {{
    {"FULL_SHARD", ShardingStrategy::full_shard, 3, true, true, false},
    {"SHARD_GRAD_OP", ShardingStrategy::shard_grad_op, 2, true, false, false},
    {"NO_SHARD", ShardingStrategy::no_shard, 0, false, false, false},
    {"HYBRID_SHARD", ShardingStrategy::hybrid_shard, 3, true, true, true},
    {"_HYBRID_SHARD_ZERO2", ShardingStrategy::hybrid_shard_zero2, 2, true, false, true},
    {"ZERO_1", ShardingStrategy::zero_1, 1, false, false, false},
    {"ZERO_2", ShardingStrategy::shard_grad_op, 2, true, false, false},
    {"ZERO_3", ShardingStrategy::full_shard, 3, true, true, false},
}};

constexpr const StrategyTraits& traits(ShardingStrategy strategy) {
    return kStrategies[static_cast<std::size_t>(strategy)];
}

// Whether the job gathers and frees units.
inline bool gathers(const Job& job) {
    return job.parallel.mode == ParallelMode::fsdp && traits(job.fsdp.sharding_strategy).shards;
}

}  // namespace shardscope::trainer::job
