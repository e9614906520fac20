#include "trainer/planner/anatomy.h"

#include <algorithm>

#include "trainer/job/strategy.h"
#include "trainer/model/models.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::planner {

namespace {

constexpr double kFp32 = 4;

std::int64_t elements(const model::Module& module) {
    std::int64_t total = 0;
    for (const model::Parameter& parameter : module.parameters()) total += parameter.elements();
    for (const auto& child : module.children()) total += elements(*child);
    return total;
}

int stage_of(const job::Job& job) {
    if (job.parallel.mode == job::ParallelMode::ddp) return job.ddp.shard_optimizer ? 1 : 0;
    if (job.parallel.mode == job::ParallelMode::none) return 0;
    return traits(job.fsdp.sharding_strategy).zero_stage;
}

double activations(const job::Job& job, double k) {
    const job::ModelSection& model = job.model;
    const double s = model.context, b = job.data.batch, h = model.width;
    // Of offloaded ones the device has those of three layers at most (model/activation_offload.h).
    const double layers = job.memory.offload.activations ? std::min(model.layers, 3) : model.layers;
    const double scores =
        model.attention == job::AttentionKind::fused ? 0 : (2 * k + 1) * model.heads * s / h;
    const double block = s * b * h * (16 * k + 2 + scores);
    const bool checkpointed = !job.memory.activation_checkpointing.names.empty();
    return checkpointed ? k * s * b * h * layers + block : block * layers;
}

}  // namespace

int states_of(const job::OptimizerSection& optimizer) {
    switch (warm_up_of(optimizer.type)) {
        case job::OptimizerType::adam:
        case job::OptimizerType::adamw:
        case job::OptimizerType::lamb:
            return 2;
        case job::OptimizerType::novograd:  // its second moments are one number a parameter
            return 1;
        default:
            return optimizer.momentum > 0 ? 1 : 0;
    }
}

Anatomy anatomy_of(const Row& row, const sim::Cluster& cluster) {
    const job::Job job = sim::placed_on(row.job, cluster);
    const double k = job.precision.param == job::Precision::fp32 ? kFp32 : 2;
    Anatomy out;
    out.stage = stage_of(job);
    const bool sharded = out.stage > 0;
    const bool groups = job.parallel.mode == job::ParallelMode::fsdp && job.fsdp.shard_group > 0;
    const int shards = job.parallel.context * (groups ? job.fsdp.shard_group : job.data_ranks());
    out.devices = sharded ? shards : 1;
    out.offloaded = job.fsdp.cpu_offload;
    out.parameters = elements(*model::make_model(job));
    const auto p = static_cast<double>(out.parameters);
    const double d = shards;
    const double state = kFp32 * (states_of(job.optimizer) + (k < kFp32 ? 1 : 0));

    const auto at_peak = [&](auto... categories) {
        return (static_cast<double>(row.peak.at_peak[static_cast<std::size_t>(categories)]) + ...);
    };
    using traces::schema::MemoryCategory;
    const bool updates_on_host = job.memory.offload.optimizer;
    const auto sharded_from = [&](const char* name, double bytes, int stage, double simulated,
                                  const char* categories) {
        Anatomy::Part part;
        part.name = name;
        for (int z = 0; z < kZeroStages; ++z)
            part.bytes[static_cast<std::size_t>(z)] = z >= stage ? bytes / d : bytes;
        part.here = out.offloaded || (updates_on_host && stage < 3)
                        ? 0
                        : part.bytes[static_cast<std::size_t>(out.stage)];
        part.simulated = simulated;
        part.categories = categories;
        return part;
    };
    out.parts[0] = sharded_from("model", k * p, 3,
                                at_peak(MemoryCategory::parameters, MemoryCategory::unsharded_parameters,
                                        MemoryCategory::communication),
                                "parameters, unsharded_parameters, communication");
    out.parts[1] = sharded_from("gradients", k * p, 2,
                                at_peak(MemoryCategory::gradients, MemoryCategory::unsharded_gradients),
                                "gradients, unsharded_gradients");
    out.parts[2] =
        sharded_from("optimizer", state * p, 1, at_peak(MemoryCategory::optimizer_state), "optimizer_state");
    Anatomy::Part& last = out.parts[3];
    last.name = "activations";
    last.simulated = at_peak(MemoryCategory::activations, MemoryCategory::other);
    last.categories = "activations, other";
    last.known = job.model.type == job::ModelType::gpt ||
                 job.model.type == job::ModelType::bert;  // the formula applies to such blocks
    if (last.known) last.here = activations(job, k);
    last.bytes.fill(last.here);
    return out;
}

}  // namespace shardscope::trainer::planner
