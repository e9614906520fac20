// Keys of a job file that the columns of a plan's own show (strategy, wrap, batch and so on): a table of
// plans has a column for each other key that distinguishes them.
#pragma once

#include <array>
#include <string_view>

namespace shardscope::traces::schema {

inline constexpr std::array<std::string_view, 17> kPlanKeys = {"parallel.mode",
                                                               "fsdp.sharding_strategy",
                                                               "fsdp.shard_group",
                                                               "fsdp.wrap",
                                                               "fsdp.cpu_offload",
                                                               "memory.activation_checkpointing",
                                                               "memory.offload",
                                                               "ddp.shard_optimizer",
                                                               "ddp.comm_hook",
                                                               "ddp.comm_hook_start",
                                                               "ddp.orthogonalization_epsilon",
                                                               "fsdp.backward_prefetch",
                                                               "fsdp.limit_all_gathers",
                                                               "precision.param",
                                                               "precision.reduce",
                                                               "data.batch",
                                                               "run.device"};

}  // namespace shardscope::traces::schema
