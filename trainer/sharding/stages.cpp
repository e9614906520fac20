#include "trainer/sharding/stages.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/core.h>

#include "trainer/pipeline/lower.h"
#include "trainer/pipeline/schedule_table.h"

namespace shardscope::trainer::sharding {

namespace {

const model::Module& unwrapped(const model::Module& module) {
    return module.is_wrapper() ? unwrapped(*module.children().front()) : module;
}

// The module that has layers as children; null if there is none.
const model::Module* parent_of_layers(const model::Module& module) {
    for (const auto& child : module.children())
        if (unwrapped(*child).is_layer) return &module;
    for (const auto& child : module.children())
        if (const model::Module* found = parent_of_layers(*child)) return found;
    return nullptr;
}

void add_parameters(const model::Module& module, std::vector<const model::Parameter*>& into) {
    for (const model::Parameter& parameter : module.parameters()) into.push_back(&parameter);
    for (const auto& child : module.children()) add_parameters(*child, into);
}

[[noreturn]] void refuse(const job::Job& job, const char* key, const std::string& why) {
    throw job::JobError(fmt::format("{}{}: {}", where(job, key), key, why));
}

const pipeline::ScheduleKind& kind_of(const job::Job& job) {
    const pipeline::ScheduleKind* kind = pipeline::find_schedule(job.parallel.schedule);
    if (kind == nullptr) {
        refuse(job, "parallel.schedule",
               fmt::format("\"{}\" is unknown; use one of {}", job.parallel.schedule,
                           pipeline::schedule_names()));
    }
    return *kind;
}

std::vector<model::ChildRange> cut(const job::Job& job, const model::Module& layers, int stages) {
    std::vector<std::size_t> starts;  // of the layers
    for (std::size_t i = 0; i < layers.children().size(); ++i)
        if (unwrapped(*layers.children()[i]).is_layer) starts.push_back(i);
    const int count = static_cast<int>(starts.size()), per_place = job.parallel.virtual_stages;
    if (count < stages) {
        refuse(job, "parallel.pipeline",
               fmt::format(
                   "{} layer{} cannot be dealt to {} stages ({} places with {} each); {}", count,
                   count == 1 ? "" : "s", stages, job.parallel.pipeline, per_place,
                   count < per_place
                       ? fmt::format("the nearest parallel.virtual_stages that works is {}", count)
                       : fmt::format("the nearest number of places that works is {}", count / per_place)));
    }
    std::vector<model::ChildRange> ranges(static_cast<std::size_t>(stages));
    std::size_t layer = 0;
    for (int s = 0; s < stages; ++s) {
        model::ChildRange& range = ranges[static_cast<std::size_t>(s)];
        range.first = s == 0 ? 0 : starts[layer];
        layer += static_cast<std::size_t>(count / stages + (s < count % stages ? 1 : 0));
        range.end = layer < starts.size() ? starts[layer] : layers.children().size();
    }
    return ranges;
}

}  // namespace

std::vector<const model::Parameter*> Stages::parameters_of(int stage) const {
    std::vector<const model::Parameter*> found;
    const model::ChildRange& range = ranges[static_cast<std::size_t>(stage)];
    for (std::size_t i = range.first; i < range.end; ++i) add_parameters(*layers->children()[i], found);
    return found;
}

Stages make_stages(const job::Job& job, const model::Module& root) {
    if (job.model.tied_embeddings) {
        refuse(job, "model.tied_embeddings",
               "the first and the last stage of a pipeline would share a parameter, which is not supported; "
               "omit the key, or set parallel.pipeline to 1");
    }
    const pipeline::ScheduleKind& kind = kind_of(job);
    const pipeline::Shape shape{job.parallel.pipeline, job.train.accumulation, job.parallel.virtual_stages};
    if (shape.chunks < kind.fewest_chunks || shape.chunks > kind.most_chunks) {
        refuse(job, "parallel.virtual_stages",
               fmt::format("{} has {} stages on each place, not {}; use {}", kind.name,
                           pipeline::taken_chunks(kind), shape.chunks,
                           std::clamp(shape.chunks, kind.fewest_chunks, kind.most_chunks)));
    }
    if (const std::string why = refusal(kind, shape); !why.empty()) refuse(job, "train.accumulation", why);
    Stages stages;
    stages.layers = parent_of_layers(root);
    if (stages.layers == nullptr) throw std::logic_error("the model has no layers to divide among stages");
    stages.ranges = cut(job, *stages.layers, shape.stages());
    const pipeline::Schedule computes = make_schedule(kind, shape);
    for (const std::vector<pipeline::Action>& own : computes.actions) {
        const bool splits = std::any_of(own.begin(), own.end(), [](const pipeline::Action& action) {
            return action.kind == pipeline::ActionKind::backward_weight;
        });
        if (splits && !job.memory.activation_checkpointing.names.empty()) {
            refuse(job, "memory.activation_checkpointing",
                   fmt::format(
                       "{} splits a backward in two, and what is recomputed has only one part; omit the "
                       "key, or use a schedule that does not split: gpipe, 1f1b, interleaved or looped_bfs",
                       kind.name));
        }
    }
    stages.schedule = lower(computes, {.fsdp = job.parallel.mode == job::ParallelMode::fsdp});
    return stages;
}

}  // namespace shardscope::trainer::sharding
