// Combines the recorded steps that did the same work into one.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/lift/recorded_costs.h"
#include "trainer/lift/step_lifter.h"

namespace shardscope::trainer::lift {

// Sets each item's times to their means over `base` and the steps in `of` that are like it. Means add up to a
// real step's time; if single items are slow now and then, a sum of medians would not.
void take_means(LiftedStep& base, std::vector<LiftedRecording>& all, const std::vector<std::size_t>& of);

// Mean costs of the engine over the steps `middle`, and the medians of single calls over all steps.
RecordedFigures figures_of(const std::vector<LiftedRecording>& all, const std::vector<std::size_t>& middle,
                           double launch_s);

}  // namespace shardscope::trainer::lift
