#include "trainer/planner/lower_bound.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/job/strategy.h"
#include "trainer/pipeline/lower.h"
#include "trainer/pipeline/schedule_table.h"
#include "trainer/pipeline/walk.h"
#include "trainer/planner/anatomy.h"
#include "trainer/planner/key_names.h"
#include "trainer/planner/pieces.h"
#include "trainer/sharding/job_mesh.h"
#include "trainer/sharding/values.h"
#include "trainer/sim/rank_classes.h"

namespace shardscope::trainer::planner {

namespace {

using pipeline::ActionKind;

constexpr std::int64_t kFp32Bytes = 4;

// The times of a job's messages and collectives on its mesh, for rank 0 and those that it waits for.
class Links {
  public:
    Links(const job::Job& job, const sim::Cluster& cluster)
        : mesh_(sharding::mesh_of(job)), cluster_(cluster) {
        // A slow link of one node slows others only if they wait for it.
        for (const job::SlowLink& slow : job.sim.slow_links)
            if (slow.node < 0) slow_links_.push_back(slow);
    }
    const plan::Mesh& mesh() const { return mesh_; }
    // Of a piece's action: the kernels and the collectives between them, or the messages of the ring beside
    // them.
    double seconds(const Work& work) const {
        double between = work.kernels, beside = 0;
        for (const auto& [key, count] : work.collectives) {
            const auto& [group, operation, bytes] = key;
            between += count * fastest_group(group, operation, bytes);
        }
        for (const auto& [bytes, count] : work.ring) beside += count * slowest_in_ring(bytes);
        return std::max(between, beside);
    }
    // From one place of a pipeline to another.
    double message(int from, int to, std::int64_t bytes) const {
        return from == to ? 0
                          : between(mesh_.member(plan::Group::pipeline, 0, from),
                                    mesh_.member(plan::Group::pipeline, 0, to), bytes);
    }

  private:
    double between(int from, int to, std::int64_t bytes) const {
        return collective_seconds(cluster_, spread_of(mesh_, {from, to}, cluster_, slow_links_),
                                  plan::Operation::send, bytes);
    }
    // Links that differ from pair to pair, and shared devices, make the groups of one kind differ: none is
    // faster than this.
    double fastest_group(plan::Group group, plan::Operation operation, std::int64_t bytes) const {
        const auto seconds = [&](int rank) {
            return collective_seconds(cluster_, spread_of(mesh_, group, rank, cluster_, slow_links_),
                                      operation, bytes);
        };
        double least = seconds(0);
        if (cluster_.links == decltype(cluster_.links)() && cluster_.ranks_per_device == 1) return least;
        for (int rank = 1; rank < mesh_.ranks; ++rank) least = std::min(least, seconds(rank));
        return least;
    }
    double slowest_in_ring(std::int64_t bytes) const {
        double slowest = 0;
        for (int place = 0; place < mesh_.size(plan::Group::context); ++place) {
            const int rank = mesh_.member(plan::Group::context, 0, place);
            slowest = std::max(slowest, between(rank, mesh_.neighbour(plan::Group::context, rank, 1), bytes));
        }
        return slowest;
    }

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

// What a piece or a stage does and keeps.
struct StageFigures {
    std::array<double, kParts> seconds{};
    std::int64_t saved = 0, left_for_weights = 0;  // bytes of a micro-batch (Piece)
    std::int64_t elements = 0, experts = 0;        // of parameters (Piece)

    StageFigures() = default;
    StageFigures(const Piece& piece, const Links& links)
        : saved(piece.saved),
          left_for_weights(piece.left_for_weights),
          elements(piece.elements),
          experts(piece.experts) {
        for (std::size_t part = 0; part < kParts; ++part) seconds[part] = links.seconds(piece.work[part]);
    }
    void add(const StageFigures& other, int times) {
        for (std::size_t part = 0; part < kParts; ++part) seconds[part] += times * other.seconds[part];
        saved += times * other.saved;
        left_for_weights += times * other.left_for_weights;
        elements += times * other.elements;
        experts += times * other.experts;
    }
};
using Figures = std::vector<StageFigures>;  // by stage

Figures figures_of(const job::Job& job, const Pieces& pieces, int stages, const Links& links) {
    Figures all(static_cast<std::size_t>(stages));
    const StageFigures first(pieces.first, links), layer(pieces.layer, links), last(pieces.last, links);
    const int layers = job.model.layers;
    for (int s = 0; s < stages; ++s)
        all[static_cast<std::size_t>(s)].add(layer, layers / stages + (s < layers % stages ? 1 : 0));
    all.front().add(first, 1);
    all.back().add(last, 1);
    if (job.model.tied_embeddings) all.back().elements -= first.elements;
    return all;
}

// The end of the first place's last action: the longest path there through actions and messages. The step of
// rank 0 is what is compared; other places may still be at work when its next step begins, but all that they
// do in a step follows from its first forward.
double longest_path(const pipeline::Schedule& schedule, const Figures& figures, const Links& links,
                    std::int64_t message) {
    std::vector<double> outputs(schedule.index(schedule.stages(), 0)), gradients(outputs.size());
    std::vector<double> free_at(schedule.actions.size());
    const auto place_of = [&](int stage) { return schedule.rank_of_stage[static_cast<std::size_t>(stage)]; };
    std::vector<double> forth(figures.size()), back(figures.size());  // messages from each stage
    for (int s = 0; s < schedule.stages(); ++s) {
        const auto i = static_cast<std::size_t>(s);
        if (s + 1 < schedule.stages()) forth[i] = links.message(place_of(s), place_of(s + 1), message);
        if (s > 0) back[i] = links.message(place_of(s), place_of(s - 1), message);
    }
    walk(schedule, [&](int rank, std::span<const pipeline::Action> cell) {
        const pipeline::Action& action = cell.front();
        double& free = free_at[static_cast<std::size_t>(rank)];
        if (const auto other = awaited(schedule, action)) {
            const bool forward = other->kind == ActionKind::forward;
            const std::size_t i = schedule.index(other->stage, other->micro_batch);
            free = std::max(free, forward ? outputs[i] + forth[static_cast<std::size_t>(other->stage)]
                                          : gradients[i] + back[static_cast<std::size_t>(other->stage)]);
        }
        free += figures[static_cast<std::size_t>(action.stage)].seconds[part_of(action.kind)];
        const std::size_t i = schedule.index(action.stage, action.micro_batch);
        if (action.kind == ActionKind::forward) outputs[i] = free;
        if (gives_input_gradient(action.kind)) gradients[i] = free;
    });
    return free_at.front();
}

// What a rank keeps for each element of a parameter, in bytes. Of a divided copy each rank has a part at all
// times; from its gather to its release, and from the first backward to the reduction, the whole.
struct Kept {
    double always = 0, in_optimizer = 0;  // without and with the gradient; fp32, whatever is computed in
    double gathered = 0, unreduced = 0;
};

double states_in(const job::Job& job) {
    return job.train.freeze.names.empty() ? states_of(job.optimizer) : 0;
}

// `shards`: the parts of a copy.
Kept kept_by(const job::Job& job, int shards, int data) {
    const double gradients = job.train.freeze.names.empty() ? 1 : 0;
    const bool on_host = job.memory.offload.optimizer;  // with gradients, but for those on their way
    if (!gathers(job) && on_host) return {kFp32Bytes, kFp32Bytes, 0, 0};
    if (!gathers(job)) {
        const bool zero_1 = job.parallel.mode == job::ParallelMode::ddp && job.ddp.shard_optimizer;
        const double states = states_in(job) / (zero_1 ? data : 1);
        return {kFp32Bytes * (1 + states), kFp32Bytes * (1 + states + gradients), 0, 0};
    }
    const auto bytes = [](job::Precision precision) {
        return static_cast<double>(plan::size_of(sharding::dtype_of(precision)));
    };
    Kept kept;
    if (on_host) {
        kept.always = kept.in_optimizer = bytes(job.precision.param) / shards;
    } else if (!job.fsdp.cpu_offload) {
        kept.always = kFp32Bytes * (1 + states_in(job)) / shards;
        kept.in_optimizer = kFp32Bytes * (1 + states_in(job) + gradients) / shards;
    }
    // A schedule gathers and frees stages; without a pipeline a unit is freed after its forward, or stays.
    const bool stays = job.fsdp.unit.empty() && (!traits(job.fsdp.sharding_strategy).frees_after_forward ||
                                                 job.fsdp.reshard_after_forward == job::Reshard::no);
    if (job.parallel.pipeline > 1 || stays) kept.gathered = bytes(job.precision.param);
    if (!job.train.accumulation_sync) {
        kept.unreduced = gradients * bytes(job.fsdp.layout == job::FsdpLayout::fsdp2 ? job.precision.reduce
                                                                                     : job.precision.param);
    }
    return kept;
}

// The most bytes that a place's actions leave in use at a time: what its micro-batches save from their
// forward to the gradient of their input, gathered parameters, and gradients that wait for their reduction.
std::int64_t most_in_flight(const std::vector<pipeline::Action>& own, int micro_batches,
                            const Figures& figures, const Kept& kept) {
    std::vector<int> left(figures.size()), backwards(figures.size());  // actions; ends of backwards
    for (const pipeline::Action& action : own) ++left[static_cast<std::size_t>(action.stage)];
    const bool gathers_all = std::count_if(left.begin(), left.end(), [](int n) { return n > 0; }) <=
                             pipeline::LowerOptions().unsharded_stages;
    double now = 0, most = 0, gathered = 0;
    const auto elements = [&](std::size_t stage) {
        return static_cast<double>(figures[stage].elements + figures[stage].experts);
    };
    for (std::size_t s = 0; s < left.size(); ++s)
        if (left[s] > 0) gathered += elements(s) * kept.gathered;
    for (const pipeline::Action& action : own) {
        const auto stage = static_cast<std::size_t>(action.stage);
        const auto saved = static_cast<double>(figures[stage].saved),
                   left_for_weights = static_cast<double>(figures[stage].left_for_weights);
        if (action.kind == ActionKind::forward) now += saved;
        if (gives_input_gradient(action.kind)) now -= saved;
        if (action.kind == ActionKind::backward_input) now += left_for_weights;
        if (action.kind == ActionKind::backward_weight) now -= left_for_weights;
        if (ends_backward(action.kind) && micro_batches > 1) {
            const int done = ++backwards[stage];
            if (done == 1) now += elements(stage) * kept.unreduced;
            if (done == micro_batches) now -= elements(stage) * kept.unreduced;
        }
        // After the last action of a stage another one's may be gathered in its place.
        if (--left[stage] == 0) gathered -= elements(stage) * kept.gathered;
        if (left[stage] == 0) continue;
        most = std::max(most, now + (gathers_all ? gathered : elements(stage) * kept.gathered));
    }
    return static_cast<std::int64_t>(most);
}

std::int64_t least_bytes(const job::Job& job, const pipeline::Schedule& schedule, const Figures& figures,
                         const plan::Mesh& mesh) {
    const int data = mesh.size(plan::Group::data);
    const Kept kept = kept_by(job, mesh.shard, data),
               of_experts = kept_by(job, mesh.size(plan::Group::expert_shard), data);
    std::int64_t bytes = 0;
    for (int place = 0; place < schedule.ranks(); ++place) {
        double elements = 0, experts = 0;
        for (const int stage : schedule.stages_of(place)) {
            elements += static_cast<double>(figures[static_cast<std::size_t>(stage)].elements);
            experts += static_cast<double>(figures[static_cast<std::size_t>(stage)].experts);
        }
        const double always = elements * kept.always + experts * of_experts.always,
                     in_optimizer = elements * kept.in_optimizer + experts * of_experts.in_optimizer;
        bytes = std::max({bytes, static_cast<std::int64_t>(in_optimizer),
                          static_cast<std::int64_t>(always) +
                              most_in_flight(schedule.actions[static_cast<std::size_t>(place)],
                                             schedule.micro_batches, figures, kept)});
    }
    return bytes;
}

}  // namespace

const Pieces& LowerBounds::pieces_of_row(const Row& row, const sim::Cluster& cluster, bool splits) {
    static constexpr std::array<std::string_view, 7> kElsewhere = {
        kPipeline, kSchedule, kVirtualStages, kAccumulation, kSharding, kShardGroup, kMemoryOffload};
    std::string key = splits ? "splits" : "";
    for (const job::Override& own : row.settings) {
        if (std::find(kElsewhere.begin(), kElsewhere.end(), own.key) == kElsewhere.end())
            key += "\n" + own.key + "=" + own.value;
    }
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Pieces>& pieces = pieces_[key];
    if (!pieces) pieces = std::make_unique<Pieces>(pieces_of(row.job, cluster, splits));
    return *pieces;
}

LowerBound LowerBounds::of(const Row& row, const sim::Cluster& cluster) {
    const job::Job& job = row.job;
    // The layers of an mlp may be pairs, and it is small; those of networks for images differ.
    if (!has_tokens(job.model.type)) return {};
    // Below, the stages have equal numbers of layers, and the schedule is one that has a name.
    if (job.parallel.pipeline > 1 && (job.parallel.stages != job::ParallelSection().stages ||
                                      pipeline::find_schedule(job.parallel.schedule) == nullptr))
        return {};
    try {
        const pipeline::Schedule schedule = schedule_of(job);
        const bool splits = std::any_of(
            schedule.actions[0].begin(), schedule.actions[0].end(),
            [](const pipeline::Action& action) { return action.kind == ActionKind::backward_weight; });
        const Pieces& pieces = pieces_of_row(row, cluster, splits);
        const Links links(job, cluster);
        Figures figures = figures_of(job, pieces, schedule.stages(), links);
        if (job.memory.offload.activations)  // a few layers' are on the device, however many there are
            for (StageFigures& stage : figures) stage.saved = 0;
        return {least_bytes(job, schedule, figures, links.mesh()),
                longest_path(schedule, figures, links, pieces.message)};
    } catch (const job::JobError&) {  // the search says what is impossible
    } catch (const pipeline::ScheduleError&) {
    }
    return {};
}

}  // namespace shardscope::trainer::planner
