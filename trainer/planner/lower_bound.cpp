#include "trainer/planner/lower_bound.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "trainer/job/strategy.h"
#include "trainer/pipeline/schedule_table.h"
#include "trainer/pipeline/walk.h"
#include "trainer/planner/anatomy.h"
#include "trainer/planner/key_names.h"
#include "trainer/sharding/job_mesh.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/costs.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::planner {

namespace {

using pipeline::ActionKind;

constexpr std::int64_t kFp32Bytes = 4;

// The actions of a stage: forward, backward (or its input's part) and the weights' part.
enum Part : std::size_t { kForward, kBackward, kWeight, kActions };

constexpr Part part_of(ActionKind kind) {
    return kind == ActionKind::forward ? kForward : kind == ActionKind::backward_weight ? kWeight : kBackward;
}

// What one action does for a piece of the model.
struct Work {
    double kernels = 0;                                                                 // seconds
    std::map<std::tuple<plan::Group, plan::Operation, std::int64_t>, int> collectives;  // with their bytes
};

struct Piece {
    std::array<Work, kActions> work;
    std::int64_t saved = 0;     // bytes from the forward to the backward
    std::int64_t elements = 0;  // of parameters
};

}  // namespace

struct LowerBounds::Parts {
    Piece first, layer, last;
};

namespace {

using Parts = LowerBounds::Parts;

// Two layers of the job on two places, without other data axes than the one that divides experts.
job::Job small_job(job::Job job, bool splits) {
    job.run.ranks = 2 * job.model_ranks() / job.parallel.pipeline * job.parallel.expert;
    job.model.layers = 2;
    job.model.tied_embeddings = false;
    job.parallel.pipeline = 2;
    job.parallel.virtual_stages = 1;
    job.parallel.schedule = splits ? "zb_h1" : "1f1b";
    job.train.accumulation = 2;
    job.train.accumulation_sync = false;
    job.train.validate_every = 0;
    job.data.validation = 0;
    job.checkpoint = {};
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

// Adds what the first micro-batch of a place does: a layer and `outer`.
void count(const sharding::Program& role, const sim::Costs& costs, Piece& layer, Piece& outer) {
    const std::vector<bool> inside = in_layers(role.modules());
    const auto piece = [&](int module) -> Piece& {
        return module >= 0 && inside[static_cast<std::size_t>(module)] ? layer : outer;
    };
    for (const model::Parameter* parameter : role.modules().held)
        piece(role.modules().owners[static_cast<std::size_t>(parameter->id)]).elements +=
            parameter->elements();
    const plan::Plan& step = role.step(role.warm_up_steps());
    std::vector<pipeline::Action> open;  // the action whose range is open, if one is
    int depth = 0;
    for (const plan::Op& op : step.ops) {
        const bool pushes = op.kind == plan::OpKind::push_range;
        if (const std::string_view range = pushes ? range_of(step, op) : ""; open.empty()) {
            if (!range.starts_with("PP:") || !pipeline::parse_cell(range.substr(3), open).empty()) continue;
            depth = 0;
        }
        depth += pushes ? 1 : op.kind == plan::OpKind::pop_range ? -1 : 0;
        const pipeline::Action action = open.front();
        if (depth == 0) open.clear();
        if (!is_compute(action.kind) || action.micro_batch > 0) continue;
        Piece& own = piece(op.module);
        Work& work = own.work[part_of(action.kind)];
        if (op.kind == plan::OpKind::kernel && op.stream == plan::Stream::compute) {
            work.kernels += costs.on_device(step, op);
        } else if (op.kind == plan::OpKind::collective && op.stream == plan::Stream::compute &&
                   op.collective().group == plan::Group::tensor) {
            ++work.collectives[{op.collective().group, op.collective().operation, op.bytes}];
        } else if (op.kind == plan::OpKind::allocate || op.kind == plan::OpKind::free) {
            const plan::Buffer& buffer = step.buffers[static_cast<std::size_t>(op.args[0].buffer)];
            if (action.kind == ActionKind::forward && buffer.category == plan::MemoryCategory::activations)
                piece(buffer.module).saved +=
                    op.kind == plan::OpKind::allocate ? buffer.bytes : -buffer.bytes;
        }
    }
}

// The seconds of a piece's actions on the job's mesh.
class Seconds {
  public:
    Seconds(const job::Job& job, const sim::Cluster& cluster)
        : mesh_(sharding::mesh_of(job)), cluster_(cluster) {
        // A slow link of one node slows others only if they wait for it.
        for (const job::SlowLink& slow : job.sim.slow_links)
            if (slow.node < 0) slow_links_.push_back(slow);
    }
    double of(const Work& work) const {
        double seconds = work.kernels;
        for (const auto& [key, count] : work.collectives) {
            const auto& [group, operation, bytes] = key;
            seconds += count * collective_seconds(cluster_, spread_of(mesh_, group, 0, cluster_, slow_links_),
                                                  operation, bytes);
        }
        return seconds;
    }

  private:
    plan::Mesh mesh_;
    const sim::Cluster& cluster_;
    std::vector<job::SlowLink> slow_links_;
};

// The stages of a job, and the schedule of their actions: one after the other without a pipeline.
pipeline::Schedule schedule_of(const job::Job& job) {
    const int m = job.train.accumulation;
    pipeline::Schedule schedule{m, {0}, std::vector<std::vector<pipeline::Action>>(1)};
    if (job.parallel.pipeline > 1) {
        schedule = make_schedule(*pipeline::find_schedule(job.parallel.schedule),
                                 {job.parallel.pipeline, m, job.parallel.virtual_stages});
        // A Plan has the two parts of an overlapped pair one after the other.
        for (auto& own : schedule.actions)
            for (pipeline::Action& action : own) action.with_next = false;
        return schedule;
    }
    for (int i = 0; i < m; ++i)
        for (const ActionKind kind : {ActionKind::forward, ActionKind::backward})
            schedule.actions[0].push_back({0, kind, i});
    return schedule;
}

// The end of the last action, if a stage's actions take `seconds`.
double longest_path(const pipeline::Schedule& schedule,
                    const std::vector<std::array<double, kActions>>& seconds) {
    std::vector<double> outputs(schedule.index(schedule.stages(), 0)), gradients(outputs.size());
    std::vector<double> free_at(schedule.actions.size());
    walk(schedule, [&](int rank, std::span<const pipeline::Action> cell) {
        const pipeline::Action& action = cell.front();
        double& free = free_at[static_cast<std::size_t>(rank)];
        if (const auto other = awaited(schedule, action)) {
            const auto& results = other->kind == ActionKind::forward ? outputs : gradients;
            free = std::max(free, results[schedule.index(other->stage, other->micro_batch)]);
        }
        free += seconds[static_cast<std::size_t>(action.stage)][part_of(action.kind)];
        const std::size_t i = schedule.index(action.stage, action.micro_batch);
        if (action.kind == ActionKind::forward) outputs[i] = free;
        if (gives_input_gradient(action.kind)) gradients[i] = free;
    });
    return *std::max_element(free_at.begin(), free_at.end());
}

// The most bytes that a place's micro-batches save, from their forward to the gradient of their input.
std::int64_t saved_in_flight(const std::vector<pipeline::Action>& own,
                             const std::vector<std::int64_t>& saved) {
    std::int64_t now = 0, most = 0;
    for (const pipeline::Action& action : own) {
        const std::int64_t bytes = saved[static_cast<std::size_t>(action.stage)];
        if (action.kind == ActionKind::forward) most = std::max(most, now += bytes);
        if (gives_input_gradient(action.kind)) now -= bytes;
    }
    return most;
}

// Bytes that a rank keeps of each parameter, with and without its gradient; fp32, whatever is computed in.
struct Kept {
    double always = 0, in_optimizer = 0;
};
Kept kept_by(const job::Job& job) {
    if (job.fsdp.cpu_offload) return {};
    const bool fsdp = job.parallel.mode == job::ParallelMode::fsdp,
               sharded = fsdp && traits(job.fsdp.sharding_strategy).shards;
    const double copies = !sharded ? 1 : job.fsdp.shard_group > 0 ? job.fsdp.shard_group : job.data_ranks();
    const double states = !job.train.freeze.names.empty() ? 0
                          : !fsdp && job.ddp.shard_optimizer
                              ? states_of(job.optimizer) / static_cast<double>(job.data_ranks())
                              : states_of(job.optimizer);
    const double gradients = job.train.freeze.names.empty() ? 1 : 0;
    return {kFp32Bytes * (1 + states) / copies, kFp32Bytes * (1 + states + gradients) / copies};
}

}  // namespace

LowerBounds::LowerBounds() = default;
LowerBounds::~LowerBounds() = default;

const Parts& LowerBounds::parts_of(const Row& row, const sim::Cluster& cluster, bool splits) {
    static constexpr std::array<std::string_view, 6> kElsewhere = {kPipeline,     kSchedule, kVirtualStages,
                                                                   kAccumulation, kSharding, kShardGroup};
    std::string key = splits ? "splits" : "";
    for (const job::Override& own : row.settings) {
        if (std::find(kElsewhere.begin(), kElsewhere.end(), own.key) == kElsewhere.end())
            key += "\n" + own.key + "=" + own.value;
    }
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Parts>& parts = parts_[key];
    if (parts) return *parts;
    parts = std::make_unique<Parts>();
    const sharding::Program program(sim::placed_on(small_job(row.job, splits), cluster));
    const sim::Costs costs(cluster, row.job.precision.tf32);
    count(program.role(0), costs, parts->layer, parts->first);
    Piece other;
    count(program.role(1), costs, other, parts->last);
    return *parts;
}

LowerBound LowerBounds::of(const Row& row, const sim::Cluster& cluster) {
    const job::Job& job = row.job;
    if (job.model.type == job::ModelType::mlp) return {};  // its layers may be pairs, and it is small
    if (job.parallel.context > 1) return {};               // its collectives are not counted here
    // Below, the stages have equal numbers of layers, and the schedule is one that has a name.
    if (job.parallel.pipeline > 1 && (job.parallel.stages != job::ParallelSection().stages ||
                                      pipeline::find_schedule(job.parallel.schedule) == nullptr))
        return {};
    try {
        const pipeline::Schedule schedule = schedule_of(job);
        const bool splits = std::any_of(
            schedule.actions[0].begin(), schedule.actions[0].end(),
            [](const pipeline::Action& action) { return action.kind == ActionKind::backward_weight; });
        const Parts& parts = parts_of(row, cluster, splits);
        const int stages = schedule.stages(), layers = job.model.layers;
        const Seconds seconds(job, cluster);
        std::vector<std::array<double, kActions>> times(static_cast<std::size_t>(stages));
        std::vector<std::int64_t> saved(times.size()), elements(times.size());
        for (int s = 0; s < stages; ++s) {
            const auto i = static_cast<std::size_t>(s);
            const auto add = [&](const Piece& piece, int times_of) {
                if (times_of == 0) return;
                for (std::size_t a = 0; a < kActions; ++a)
                    times[i][a] += times_of * seconds.of(piece.work[a]);
                saved[i] += times_of * piece.saved;
                elements[i] += times_of * piece.elements;
            };
            add(parts.layer, layers / stages + (s < layers % stages ? 1 : 0));
            if (s == 0) add(parts.first, 1);
            if (s + 1 < stages) continue;
            add(parts.last, 1);
            if (job.model.tied_embeddings) elements[i] -= parts.first.elements;
        }
        // What the kernels of experts take depends on the rows that are there.
        LowerBound bound{0, job.model.experts > 0 ? 0 : longest_path(schedule, times)};
        const Kept kept = kept_by(job);
        for (int place = 0; place < schedule.ranks(); ++place) {
            std::int64_t own = 0;
            for (const int stage : schedule.stages_of(place))
                own += elements[static_cast<std::size_t>(stage)];
            const auto all = static_cast<double>(own);
            const std::int64_t in_flight =
                saved_in_flight(schedule.actions[static_cast<std::size_t>(place)], saved);
            bound.bytes = std::max({bound.bytes, static_cast<std::int64_t>(all * kept.in_optimizer),
                                    static_cast<std::int64_t>(all * kept.always) + in_flight});
        }
        return bound;
    } catch (const job::JobError&) {  // the search says what is impossible
    } catch (const pipeline::ScheduleError&) {
    }
    return {};
}

}  // namespace shardscope::trainer::planner
