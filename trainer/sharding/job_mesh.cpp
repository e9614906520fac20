#include "trainer/sharding/job_mesh.h"

#include <cstddef>

#include "trainer/job/job.h"
#include "trainer/job/strategy.h"

namespace shardscope::trainer::sharding {

namespace {

plan::AxisOrder innermost_first(const job::MeshOrder& order) {
    plan::AxisOrder axes = plan::kMegatronOrder;
    std::size_t next = 0;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
        switch (*axis) {
            case job::MeshAxis::tp:
                axes[next++] = plan::Axis::tensor;
                break;
            case job::MeshAxis::cp:
                axes[next++] = plan::Axis::context;
                break;
            case job::MeshAxis::dp:
                axes[next++] = plan::Axis::shard;
                axes[next++] = plan::Axis::replica;
                break;
            case job::MeshAxis::pp:
                axes[next++] = plan::Axis::pipeline;
                break;
            case job::MeshAxis::ep:
                break;
        }
    }
    return axes;
}

}  // namespace

plan::Mesh mesh_of(const job::Job& job) {
    plan::Mesh mesh{
        .ranks = job.run.ranks,
        .tensor = job.parallel.tensor,
        .pipeline = job.parallel.pipeline,
        .expert = job.parallel.expert,
        .context = job.parallel.context,
        .order = innermost_first(job.parallel.order),
        .ring = job.parallel.context > 1 && job.parallel.context_exchange == job::ContextExchange::ring,
        .servers = job.servers(),
        .disk = !job.memory.nvme.empty()};
    if (job.parallel.mode == job::ParallelMode::fsdp && traits(job.fsdp.sharding_strategy).shards)
        mesh.shard =
            job.parallel.context * (job.fsdp.shard_group > 0 ? job.fsdp.shard_group : job.data_ranks());
    return mesh;
}

job::Job on_one_tensor_group(job::Job job) {
    job.parallel.mode = job::ParallelMode::none;
    job.ddp.shard_optimizer = false;
    job.run.ranks = job.parallel.tensor;
    job.parallel.context = job.parallel.expert = job.parallel.pipeline = job.parallel.virtual_stages = 1;
    job.parallel.context_exchange = job::ContextExchange::allgather;
    return job;
}

}  // namespace shardscope::trainer::sharding
