#include "trainer/sharding/stages.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "trainer/pipeline/csv.h"
#include "trainer/pipeline/lower.h"
#include "trainer/pipeline/schedule_table.h"
#include "trainer/sharding/stage_costs.h"

namespace shardscope::trainer::sharding {

namespace {

void add_parameters(const model::Module& module, std::vector<const model::Parameter*>& into) {
    for (const model::Parameter& parameter : module.parameters()) into.push_back(&parameter);
    for (const model::Parameter* parameter : module.shared_parameters()) into.push_back(parameter);
    for (const auto& child : module.children()) add_parameters(*child, into);
}

[[noreturn]] void refuse(const job::Job& job, const char* key, const std::string& why) {
    throw job::JobError(fmt::format("{}{}: {}", where(job, key), key, why));
}

std::string plural(std::int64_t count, const char* what, const char* ending = "s") {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : ending);
}

// What the job says of the pipeline, for a schedule by name.
pipeline::Schedule named_schedule(const job::Job& job) {
    const pipeline::ScheduleKind* kind = pipeline::find_schedule(job.parallel.schedule);
    if (kind == nullptr) {
        refuse(job, "parallel.schedule",
               fmt::format("\"{}\" is unknown; use one of {}, or FILE.csv", job.parallel.schedule,
                           pipeline::schedule_names()));
    }
    const pipeline::Shape shape{job.parallel.pipeline, job.train.accumulation, job.parallel.virtual_stages};
    if (shape.chunks < kind->fewest_chunks || shape.chunks > kind->most_chunks) {
        refuse(job, "parallel.virtual_stages",
               fmt::format("{} has {} stage{} on each place, not {}; use {}", kind->name,
                           pipeline::taken_chunks(*kind), kind->most_chunks == 1 ? "" : "s", shape.chunks,
                           std::clamp(shape.chunks, kind->fewest_chunks, kind->most_chunks)));
    }
    if (const std::string why = refusal(*kind, shape); !why.empty()) refuse(job, "train.accumulation", why);
    return make_schedule(*kind, shape);
}

// A schedule that the user gives, which has the job's shape and no messages but between neighbours.
pipeline::Schedule schedule_of_file(const job::Job& job) {
    const std::string& file = job.parallel.schedule;
    pipeline::Schedule made;
    try {
        made = pipeline::read_csv(file);
    } catch (const pipeline::ScheduleError& error) {
        refuse(job, "parallel.schedule", error.what());
    }
    const int places = made.ranks(), chunks = job.parallel.virtual_stages;
    if (made != pipeline::computes_of(made)) {
        refuse(
            job, "parallel.schedule",
            fmt::format("{} has actions that are added to its computations (SEND, RECV, UNSHARD and such); "
                        "give F, B, I and W alone",
                        file));
    }
    if (places != job.parallel.pipeline) {
        refuse(job, "parallel.pipeline",
               fmt::format("{} has {}, not {}; use {}", file, plural(places, "rank"), job.parallel.pipeline,
                           places));
    }
    if (made.micro_batches != job.train.accumulation) {
        refuse(job, "train.accumulation",
               fmt::format("{} has {}, not {}; use {}", file, plural(made.micro_batches, "micro-batch", "es"),
                           job.train.accumulation, made.micro_batches));
    }
    for (int rank = 0; rank < places; ++rank) {
        const auto own = static_cast<int>(made.stages_of(rank).size());
        if (own == chunks) continue;
        refuse(job, "parallel.virtual_stages",
               fmt::format("{} has {} on rank {}, not {}; {}", file, plural(own, "stage"), rank, chunks,
                           made.stages() == own * places
                               ? fmt::format("use {}", own)
                               : "let every rank have as many stages as parallel.virtual_stages says"));
    }
    for (int stage = 1; stage < made.stages(); ++stage) {
        const int from = made.rank_of_stage[static_cast<std::size_t>(stage) - 1],
                  to = made.rank_of_stage[static_cast<std::size_t>(stage)];
        const int apart = (to - from + places) % places;
        if (apart <= 1 || apart == places - 1) continue;
        refuse(job, "parallel.schedule",
               fmt::format("{} has stage {} on rank {} and stage {} on rank {}, which are not neighbours; "
                           "let neighbouring stages be on one rank or on neighbouring ones",
                           file, stage - 1, from, stage, to));
    }
    return made;
}

// The layers of a model, as children of one module.
struct Layers {
    explicit Layers(const model::Module& parent) : module(parent) {
        for (std::size_t i = 0; i < parent.children().size(); ++i)
            if (unwrapped(*parent.children()[i]).is_layer) starts.push_back(i);
    }
    const std::string& path(std::size_t layer) const {
        return unwrapped(*module.children()[starts[layer]]).path;
    }
    int count() const { return static_cast<int>(starts.size()); }

    const model::Module& module;
    std::vector<std::size_t> starts;
};

// Each of `named` is the first layer of a stage; the first stage begins with the first layer.
std::vector<std::size_t> divide_by_name(const job::Job& job, const Layers& layers, int stages) {
    std::vector<std::size_t> firsts = {0};
    std::string_view rest = job.parallel.stages;
    for (bool more = true; more;) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        const std::string name(rest.substr(0, end));
        more = end < rest.size();
        rest.remove_prefix(std::min(end + 1, rest.size()));
        std::size_t layer = 0;
        while (layer < layers.starts.size() && layers.path(layer) != name) ++layer;
        if (layer == layers.starts.size()) {
            refuse(job, "parallel.stages",
                   fmt::format("\"{}\" is not a layer; the layers are {} to {}", name, layers.path(0),
                               layers.path(layers.starts.size() - 1)));
        }
        if (layer <= firsts.back()) {
            refuse(job, "parallel.stages",
                   fmt::format("{} leaves the stage before it without a layer; name the first layer of each "
                               "stage but the first, in the order of the model",
                               name));
        }
        firsts.push_back(layer);
    }
    if (firsts.size() != static_cast<std::size_t>(stages)) {
        refuse(job, "parallel.stages",
               fmt::format("{} named, which makes {}, not the {} of {} with {} each; name {}",
                           plural(static_cast<std::int64_t>(firsts.size()) - 1, "layer"),
                           plural(static_cast<std::int64_t>(firsts.size()), "stage"), stages,
                           plural(job.parallel.pipeline, "place"), job.parallel.virtual_stages, stages - 1));
    }
    std::vector<std::size_t> division;
    firsts.push_back(layers.starts.size());
    for (std::size_t s = 1; s < firsts.size(); ++s) division.push_back(firsts[s] - firsts[s - 1]);
    return division;
}

// The cost of each layer, with what its stage has besides it.
std::vector<std::int64_t> costs_of(const job::Job& job, const Layers& layers) {
    const std::vector<std::int64_t> children = flops_by_child(job);
    std::vector<std::int64_t> costs(layers.starts.size());
    std::size_t layer = 0;
    for (std::size_t child = 0; child < children.size(); ++child) {
        if (layer + 1 < layers.starts.size() && child == layers.starts[layer + 1]) ++layer;
        costs[layer] += children[child];
    }
    return costs;
}

// How many layers each stage has.
std::vector<std::size_t> divide(const job::Job& job, const Layers& layers, int stages) {
    const int count = layers.count(), chunks = job.parallel.virtual_stages;
    if (count < stages) {
        refuse(
            job, "parallel.pipeline",
            fmt::format("{} cannot be dealt to {} stages ({} places with {} each); {}",
                        plural(count, "layer"), stages, job.parallel.pipeline, chunks,
                        count < chunks
                            ? fmt::format("the nearest parallel.virtual_stages that works is {}", count)
                            : fmt::format("the nearest number of places that works is {}", count / chunks)));
    }
    if (job.parallel.stages == "cost")
        return divide_by_cost(costs_of(job, layers), static_cast<std::size_t>(stages));
    if (job.parallel.stages != "blocks") return divide_by_name(job, layers, stages);
    std::vector<std::size_t> division;
    division.reserve(static_cast<std::size_t>(stages));
    for (int s = 0; s < stages; ++s)
        division.push_back(static_cast<std::size_t>(count / stages + (s < count % stages ? 1 : 0)));
    return division;
}

// Where tied embeddings would not have the gradient of both ends.
void refuse_tied(const job::Job& job, const Stages& stages) {
    const auto set = [&](const char* key, const char* why, const char* to = "false") {
        refuse(job, "model.tied_embeddings",
               fmt::format("the ends of the pipeline exchange the gradient of their copies, {}; set {} to {}",
                           why, key, to));
    };
    if (stages.place_of(0) == stages.place_of(stages.count() - 1)) return;  // there is one copy
    const int places = job.parallel.pipeline, first = stages.place_of(0),
              last = stages.place_of(stages.count() - 1);
    if (const int apart = (last - first + places) % places; apart > 1 && apart < places - 1) {
        refuse(job, "model.tied_embeddings",
               fmt::format("{} has the first stage on rank {} and the last on rank {}, which exchange the "
                           "gradient of their copies and are not neighbours; let them be neighbours, or omit "
                           "the key",
                           job.parallel.schedule, first, last));
    }
    if (job.parallel.mode == job::ParallelMode::ddp && job.ddp.shard_optimizer)
        set("ddp.shard_optimizer", "which a sharded optimizer keeps in one buffer with the others");
    if (job.parallel.mode == job::ParallelMode::fsdp && job.fsdp.cpu_offload)
        set("fsdp.cpu_offload", "which is on the host then");
    if (job.memory.offload.optimizer)
        set("memory.offload", "which is on the host then", "\"none\" or \"activations\"");
}

std::vector<model::ChildRange> cut(const job::Job& job, const Layers& layers, int stages) {
    std::vector<model::ChildRange> ranges;
    std::size_t layer = 0;
    for (const std::size_t own : divide(job, layers, stages)) {
        model::ChildRange& range = ranges.emplace_back();
        range.first = layer == 0 ? 0 : layers.starts[layer];
        layer += own;
        range.end = layer < layers.starts.size() ? layers.starts[layer] : layers.module.children().size();
    }
    return ranges;
}

}  // namespace

const model::Module* parent_of_layers(const model::Module& module) {
    for (const auto& child : module.children())
        if (unwrapped(*child).is_layer) return &module;
    for (const auto& child : module.children())
        if (const model::Module* found = parent_of_layers(*child)) return found;
    return nullptr;
}

std::vector<const model::Parameter*> Stages::parameters_of(int stage) const {
    std::vector<const model::Parameter*> found;
    const model::ChildRange& range = ranges[static_cast<std::size_t>(stage)];
    for (std::size_t i = range.first; i < range.end; ++i) add_parameters(*layers->children()[i], found);
    return found;
}

const model::Parameter* Stages::tied() const {
    const std::vector<const model::Parameter*> first = parameters_of(0);
    for (const model::Parameter* parameter : parameters_of(count() - 1))
        if (std::find(first.begin(), first.end(), parameter) != first.end()) return parameter;
    return nullptr;
}

Stages make_stages(const job::Job& job, model::ModuleTree& tree, int place, const Stages* of_another) {
    Stages stages;
    if (of_another) stages = *of_another;
    stages.layers = parent_of_layers(*tree.root);
    if (stages.layers == nullptr) throw std::logic_error("the model has no layers to divide among stages");
    if (!of_another) {
        const pipeline::Schedule computes =
            job.parallel.schedule.ends_with(".csv") ? schedule_of_file(job) : named_schedule(job);
        stages.ranges = cut(job, Layers(*stages.layers), computes.stages());
        stages.schedule = lower(computes, {.fsdp = job.parallel.mode == job::ParallelMode::fsdp});
        if (job.model.tied_embeddings) refuse_tied(job, stages);
    }
    tree.held.clear();
    tree.stages.assign(tree.parameters.size(), -1);
    for (const int stage : stages.schedule.stages_of(place)) {
        for (const model::Parameter* parameter : stages.parameters_of(stage)) {
            int& first = tree.stages[static_cast<std::size_t>(parameter->id)];
            if (first < 0) tree.held.push_back(parameter);
            if (first < 0) first = stage;
        }
    }
    for (model::Parameter* parameter : tree.parameters) parameter->users = 1;  // in a stage's backward
    return stages;
}

}  // namespace shardscope::trainer::sharding
