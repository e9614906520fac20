// One step from the recorded ones that did the same.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/lift/recorded_costs.h"
#include "trainer/lift/step_lifter.h"

namespace shardscope::trainer::lift {

// The mean of each item's times over the steps in `of` that are like `base`. Means add up: where single items
// are slow now and then, the sum of their medians is a step that never was.
void take_means(LiftedStep& base, std::vector<LiftedRecording>& all, const std::vector<std::size_t>& of);

// The engine's costs over the steps `middle`.
RecordedFigures figures_of(const std::vector<LiftedRecording>& all, const std::vector<std::size_t>& middle,
                           double launch_s);

}  // namespace shardscope::trainer::lift
