// The stages that a pipeline cuts a model into, and the schedule of their micro-batches.
//
// The L layers of a model (its blocks; of an mlp its Linears, in pairs if a tensor group divides them) are
// dealt in their order to S = pipeline * virtual_stages stages, as parallel.stages says: "blocks": L div S
// each, and the first L mod S have one more; "cost": as equal FLOPs as possible (stage_costs.h); else each
// stage but the first begins with a layer that is named, as with torchtitan's split points. What comes before
// the first layer (embeddings) belongs to the first stage, what follows the last (norm, head) to the last,
// and what stands between two layers (an activation) to the stage of the one before it. Of tied embeddings
// both ends have a copy.
#pragma once

#include <vector>

#include "trainer/job/job.h"
#include "trainer/model/module.h"
#include "trainer/pipeline/schedule.h"

namespace shardscope::trainer::sharding {

struct Stages {
    pipeline::Schedule schedule;            // with transfers, and what FSDP gathers and frees
    std::vector<model::ChildRange> ranges;  // by stage: children of `layers`
    const model::Module* layers = nullptr;  // the module whose children are divided

    int count() const { return schedule.stages(); }
    int place_of(int stage) const { return schedule.rank_of_stage[static_cast<std::size_t>(stage)]; }
    bool is_first(int stage) const { return stage == 0; }
    bool is_last(int stage) const { return stage + 1 == count(); }
    // Those that its modules read, a tied head's too.
    std::vector<const model::Parameter*> parameters_of(int stage) const;
    // The parameter that the first and the last stage read (tied embeddings); null: none.
    const model::Parameter* tied() const;
    // The same if they are on two places, which then have a copy each.
    const model::Parameter* copied() const { return place_of(0) == place_of(count() - 1) ? nullptr : tied(); }
};

// The module itself, without FSDP's wrapper.
using model::unwrapped;
// The module that has layers as children; null if there is none.
const model::Module* parent_of_layers(const model::Module& module);

// Also writes into the tree which parameters the ranks at `place` hold. `of_another`: those that another
// place of the job has, with the same schedule and ranges, or null. Throws JobError if the job's schedule
// cannot have its micro-batches, or the model is too small.
Stages make_stages(const job::Job& job, model::ModuleTree& tree, int place, const Stages* of_another);

}  // namespace shardscope::trainer::sharding
