// Names of the keys that the planner's spaces decide.
#pragma once

namespace shardscope::trainer::planner {

inline constexpr const char* kMode = "parallel.mode";
inline constexpr const char* kSharding = "fsdp.sharding_strategy";
inline constexpr const char* kShardGroup = "fsdp.shard_group";
inline constexpr const char* kShardOptimizer = "ddp.shard_optimizer";
inline constexpr const char* kCommHook = "ddp.comm_hook";
inline constexpr const char* kOffload = "fsdp.cpu_offload";
inline constexpr const char* kWrap = "fsdp.wrap";
inline constexpr const char* kPrefetch = "fsdp.backward_prefetch";
inline constexpr const char* kLimiter = "fsdp.limit_all_gathers";
inline constexpr const char* kParam = "precision.param";
inline constexpr const char* kReduce = "precision.reduce";
inline constexpr const char* kCheckpointing = "memory.activation_checkpointing";
inline constexpr const char* kMemoryOffload = "memory.offload";
inline constexpr const char* kNvme = "memory.nvme";
inline constexpr const char* kBatch = "data.batch";
inline constexpr const char* kLayout = "fsdp.layout";
inline constexpr const char* kAccumulation = "train.accumulation";
inline constexpr const char* kAttention = "model.attention";
inline constexpr const char* kForwardPrefetch = "fsdp.forward_prefetch";
inline constexpr const char* kUnit = "fsdp.unit";
inline constexpr const char* kTensor = "parallel.tensor";
inline constexpr const char* kSequence = "parallel.sequence";
inline constexpr const char* kContext = "parallel.context";
inline constexpr const char* kContextExchange = "parallel.context_exchange";
inline constexpr const char* kPipeline = "parallel.pipeline";
inline constexpr const char* kSchedule = "parallel.schedule";
inline constexpr const char* kStages = "parallel.stages";
inline constexpr const char* kExpert = "parallel.expert";
inline constexpr const char* kVirtualStages = "parallel.virtual_stages";

}  // namespace shardscope::trainer::planner
