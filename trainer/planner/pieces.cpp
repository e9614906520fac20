#include "trainer/planner/pieces.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/job/strategy.h"
#include "trainer/planner/anatomy.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/costs.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::planner {

namespace {

// Two layers of the job on two places, without other data axes than the one that divides experts.
job::Job small_job(job::Job job, const char* schedule) {
    job.run.ranks = 2 * job.model_ranks() / job.parallel.pipeline * job.parallel.expert;
    job.model.layers = 2;
    job.model.tied_embeddings = false;
    job.parallel.pipeline = 2;
    job.parallel.virtual_stages = 1;
    job.parallel.schedule = schedule;
    job.train.accumulation = 2;
    job.train.accumulation_sync = false;
    job.train.validate_every = 0;
    job.data.validation = job.data.test = 0;
    job.checkpoint = {};
    job.memory.offload = {};
    if (traits(job.fsdp.sharding_strategy).shards) {
        job.fsdp.sharding_strategy = job::ShardingStrategy::full_shard;
        job.fsdp.shard_group = 0;
    }
    return job;
}

// By module: whether it is a layer or inside one.
std::vector<bool> in_layers(const model::ModuleTree& tree) {
    std::vector<bool> inside(tree.modules.size());
    for (std::size_t i = 0; i < inside.size(); ++i) {
        for (int m = static_cast<int>(i); m >= 0; m = tree.parents[static_cast<std::size_t>(m)])
            inside[i] = inside[i] || tree.modules[static_cast<std::size_t>(m)]->is_layer;
    }
    return inside;
}

// The micro-batch whose actions are counted: not the first forward, in which units are gathered, nor the last
// backward, which reduces.
constexpr int counted(Part part) {
    return part == kForward ? 1 : 0;
}

void count_collective(const plan::Op& op, Work& work) {
    const plan::CollectiveOp& own = op.collective();
    if (own.group == plan::Group::context && own.operation == plan::Operation::recv) {
        ++work.ring[op.bytes];
    } else if (op.stream == plan::Stream::compute) {
        // The world is the data group of a mesh without tensor groups and pipelines.
        const plan::Group group = own.group == plan::Group::world ? plan::Group::data : own.group;
        ++work.collectives[{group, own.operation, op.bytes}];
    }
}

// Adds what a place does in the actions of one micro-batch: a layer and `outer`. Returns the bytes of a
// message.
std::int64_t count(const sharding::Program& role, const sim::Costs& costs, Piece& layer, Piece& outer) {
    std::int64_t message = 0;
    const std::vector<bool> inside = in_layers(role.modules());
    const auto piece = [&](int module) -> Piece& {
        return module >= 0 && inside[static_cast<std::size_t>(module)] ? layer : outer;
    };
    const plan::Plan& step = role.step(role.warm_up_steps());
    std::vector<pipeline::Action> open;  // the action whose range is open, if one is
    int depth = 0;
    for (const plan::Op& op : step.ops) {
        if (is_message(op) && op.collective().group == plan::Group::pipeline) message = op.bytes;
        const bool pushes = op.kind == plan::OpKind::push_range;
        if (const std::string_view range = pushes ? range_of(step, op) : ""; open.empty()) {
            if (!range.starts_with("PP:") || !pipeline::parse_cell(range.substr(3), open).empty()) continue;
            depth = 0;
        }
        depth += pushes ? 1 : op.kind == plan::OpKind::pop_range ? -1 : 0;
        const pipeline::Action action = open.front();
        if (depth == 0) open.clear();
        if (!is_compute(action.kind)) continue;
        const Part part = part_of(action.kind);
        if (action.micro_batch != counted(part)) continue;
        Piece& own = piece(op.module);
        if (op.kind == plan::OpKind::kernel && op.stream == plan::Stream::compute) {
            own.work[part].kernels += costs.on_device(step, op);
        } else if (op.kind == plan::OpKind::collective) {
            count_collective(op, own.work[part]);
        } else if (op.kind == plan::OpKind::allocate || op.kind == plan::OpKind::free) {
            const plan::Buffer& buffer = step.buffers[static_cast<std::size_t>(op.args[0].buffer)];
            if (buffer.category != plan::MemoryCategory::activations) continue;
            const std::int64_t more = op.kind == plan::OpKind::allocate ? buffer.bytes : -buffer.bytes;
            if (part == kForward) piece(buffer.module).saved += more;
            if (part == kWeight) piece(buffer.module).left_for_weights -= more;
        }
    }
    for (const model::Parameter* parameter : role.modules().held) {
        Piece& own = piece(role.modules().owners[static_cast<std::size_t>(parameter->id)]);
        (parameter->is_cut(plan::Group::expert) ? own.experts : own.elements) += parameter->elements();
    }
    return message;
}

Pieces counted_under(const char* schedule, const job::Job& job, const sim::Cluster& cluster) {
    const sharding::Program program(sim::placed_on(small_job(job, schedule), cluster));
    const sim::Costs costs(cluster, job.precision.tf32);
    Pieces pieces;
    pieces.message = count(program.role(0), costs, pieces.layer, pieces.first);
    Piece other;
    count(program.role(1), costs, other, pieces.last);
    return pieces;
}

}  // namespace

Pieces pieces_of(const job::Job& job, const sim::Cluster& cluster, bool splits) {
    Pieces pieces = counted_under("1f1b", job, cluster);
    if (!splits) return pieces;
    Pieces split = counted_under("zb_h1", job, cluster);
    for (Piece Pieces::*piece : {&Pieces::first, &Pieces::layer, &Pieces::last}) {
        (pieces.*piece).left_for_weights = std::max<std::int64_t>((split.*piece).left_for_weights, 0);
        for (const Part part : {kInput, kWeight})
            (pieces.*piece).work[part] = std::move((split.*piece).work[part]);
    }
    return pieces;
}

}  // namespace shardscope::trainer::planner
