#include "trainer/lift/pytorch_lines.h"

#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardscope::trainer::lift {

namespace {

std::vector<std::string> recorded_units(const Lifted& lifted) {
    std::set<std::string> classes;
    for (std::size_t n = 1; n < lifted.step.nodes.size(); ++n)
        if (lifted.step.nodes[n].unit) classes.insert(lifted.step.nodes[n].class_name);
    return {classes.begin(), classes.end()};
}

bool frees_after_forward(ShardingStrategy strategy) {
    return strategy == ShardingStrategy::full_shard || strategy == ShardingStrategy::hybrid_shard;
}

std::string_view strategy_name(ShardingStrategy strategy) {
    switch (strategy) {
        case ShardingStrategy::shard_grad_op:
            return "SHARD_GRAD_OP";
        case ShardingStrategy::no_shard:
            return "NO_SHARD";
        case ShardingStrategy::hybrid_shard:
            return "HYBRID_SHARD";
        case ShardingStrategy::hybrid_shard_zero2:
            return "_HYBRID_SHARD_ZERO2";
        default:
            return "FULL_SHARD";
    }
}

PytorchLines fsdp2(const Lifted& lifted, const Job& job) {
    PytorchLines out{"FSDP2", {"from torch.distributed.fsdp import fully_shard"}};
    const FsdpSection& fsdp = job.fsdp;
    std::string options;
    const auto add = [&](const std::string& text) { options += ", " + text; };
    if (job.precision.param == Precision::bf16) {
        out.lines.front() += ", MixedPrecisionPolicy";
        add(fmt::format("mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.{})",
                        job.precision.reduce == Precision::bf16 ? "bfloat16" : "float32"));
    }
    if (fsdp.cpu_offload) {
        out.lines.front() += ", CPUOffloadPolicy";
        add("offload_policy=CPUOffloadPolicy()");
    }
    if (fsdp.shard_group > 0) {
        out.lines.push_back(fmt::format(
            "mesh = init_device_mesh(\"cuda\", ({}, {}), mesh_dim_names=(\"replicate\", \"shard\"))",
            job.run.ranks / fsdp.shard_group, fsdp.shard_group));
        add("mesh=mesh");
    }
    std::string inner = options;
    if (!frees_after_forward(fsdp.sharding_strategy)) inner += ", reshard_after_forward=False";
    const bool as_recorded = lifted.units && !job.origins.contains("fsdp.wrap");
    const std::vector<std::string> classes = as_recorded ? recorded_units(lifted) : fsdp.wrap.names;
    if (!classes.empty()) {
        out.lines.push_back("for module in model.modules():");
        out.lines.push_back(fmt::format(
            "    if isinstance(module, {}): fully_shard(module{})",
            classes.size() == 1 ? classes.front() : fmt::format("({})", fmt::join(classes, ", ")), inner));
    } else if (fsdp.wrap.kind == Wrap::Kind::size) {
        out.lines.push_back("for module in reversed(list(model.modules())):  # those inside first");
        out.lines.push_back(
            fmt::format("    if sum(p.numel() for p in module.parameters()) >= {}: fully_shard(module{})",
                        fsdp.wrap.threshold, inner));
    }
    out.lines.push_back(fmt::format("fully_shard(model{})", options));
    return out;
}

PytorchLines fsdp1(const Lifted& lifted, const Job& job) {
    PytorchLines out{
        "FSDP1",
        {"from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy, "
         "BackwardPrefetch"}};
    const FsdpSection& fsdp = job.fsdp;
    std::string line = fmt::format("model = FSDP(model, sharding_strategy=ShardingStrategy.{}",
                                   strategy_name(fsdp.sharding_strategy));
    const bool as_recorded = lifted.units && !job.origins.contains("fsdp.wrap");
    const std::vector<std::string> classes = as_recorded ? recorded_units(lifted) : fsdp.wrap.names;
    if (!classes.empty()) {
        out.lines.emplace_back("from torch.distributed.fsdp.wrap import ModuleWrapPolicy");
        line += fmt::format(", auto_wrap_policy=ModuleWrapPolicy({{{}}})", fmt::join(classes, ", "));
    } else if (fsdp.wrap.kind == Wrap::Kind::size) {
        out.lines.emplace_back("from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy");
        line += fmt::format(
            ", auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, min_num_params={})",
            fsdp.wrap.threshold);
    }
    line += fsdp.backward_prefetch == BackwardPrefetch::pre
                ? ", backward_prefetch=BackwardPrefetch.BACKWARD_PRE"
            : fsdp.backward_prefetch == BackwardPrefetch::post
                ? ", backward_prefetch=BackwardPrefetch.BACKWARD_POST"
                : ", backward_prefetch=None";
    if (fsdp.forward_prefetch) line += ", forward_prefetch=True";
    line += fmt::format(", limit_all_gathers={}", fsdp.limit_all_gathers ? "True" : "False");
    if (fsdp.cpu_offload) line += ", cpu_offload=CPUOffload(offload_params=True)";
    if (job.precision.param == Precision::bf16) {
        line +=
            fmt::format(", mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.{})",
                        job.precision.reduce == Precision::bf16 ? "bfloat16" : "float32");
    }
    out.lines.push_back(line + ")");
    return out;
}

}  // namespace

std::vector<PytorchLines> pytorch_lines(const Lifted& lifted, const Job& job) {
    if (job.parallel.mode == ParallelMode::ddp) {
        // Buckets that were lifted whole are what they were.
        const bool whole = lifted.parameters == ParametersFrom::buckets && job.ddp.bucket_cap_mb < 0.01;
        const std::string buckets = whole ? "" : fmt::format(", bucket_cap_mb={:g}", job.ddp.bucket_cap_mb);
        const std::string view = job.ddp.gradient_as_bucket_view ? ", gradient_as_bucket_view=True" : "";
        return {{"DDP",
                 {"from torch.nn.parallel import DistributedDataParallel as DDP",
                  fmt::format("model = DDP(model{}{})", buckets, view)}}};
    }
    if (job.parallel.mode != ParallelMode::fsdp) return {};
    std::vector<PytorchLines> both;
    // fully_shard always shards.
    if (job.fsdp.sharding_strategy != ShardingStrategy::no_shard) both.push_back(fsdp2(lifted, job));
    both.push_back(fsdp1(lifted, job));
    return both;
}

}  // namespace shardscope::trainer::lift
