// Derives the parameters of each module, and where in its backward their gradients are complete, from
// whatever evidence the trace has.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/lift/module_places.h"
#include "trainer/lift/step_lifter.h"
#include "trainer/lift/step_parts.h"

namespace shardscope::trainer::lift {

// Sizes of a step's units and buckets, as its collectives show them.
struct UnitTraffic {
    struct Bucket {
        Place place;  // in the backward, before the item at `position`
        std::size_t position = 0;
        std::int64_t bytes = 0;
    };
    std::vector<Bucket> buckets;        // DDP's all-reduces, in the backward
    std::vector<std::int64_t> gathers;  // bytes of units' all-gathers, in the forward
};

// Returns the parameter's index in LiftedStep::parameters.
int add_parameter(LiftedStep& step, int owner, LiftedParameter parameter);

// Completes the parameters of out.step. In a trace of our trainer, those with gradients are already there by
// name.
void complete_parameters(const traces::store::Trace& trace, traces::store::RankIndex rank,
                         const StepParts& parts, const ModulePlaces& places, const UnitTraffic& traffic,
                         const StepLifterOptions& options, LiftedRecording& out);

}  // namespace shardscope::trainer::lift
