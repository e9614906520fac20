// The first step of a run, if it warms up (memory pools, caches, compilation) and takes so much longer than
// the others that it would dominate the figures of all steps. Definition: docs/definitions.md, "Advice".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/base/step_windows.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct WarmUp {
    std::int64_t step = 0;   // its number
    std::int64_t after = 0;  // the number of the step that follows it
    double times = 0;        // its window over the median of its rank's other windows
};

// The warm-up step that an analysis excludes; none if the trace has no steps, or steps or a time range are
// selected.
std::optional<WarmUp> find_warm_up(const store::Trace& trace, const TraceSteps& steps,
                                   const Selection& selection);

// The selection without the warm-up step, if there is one.
Selection without_warm_up(Selection selection, const std::optional<WarmUp>& warm_up);

// "Step 1 is excluded as warm-up: it takes 3.1 times as long as the others' median."
std::string sentence(const WarmUp& warm_up);

}  // namespace shardscope::traces::analysis
