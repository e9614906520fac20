// The planned computations of a pipeline's step, and when they would run: a replay in the planned order in
// which every computation takes the mean time that those of its stage and kind took, results arrive
// immediately, and nothing else holds a rank up. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/analysis/pipeline/timeline.h"
#include "traces/schema/rows.h"

namespace shardscope::traces::analysis {

// What another stage's computation gives: its output, or the gradient of its input.
struct StageResult {
    std::int64_t stage = 0;  // a name may have any number, to which 1 is added
    int micro_batch = 0;
    bool forward = true;
    bool operator<(const StageResult& other) const {
        return std::tie(stage, micro_batch, forward) <
               std::tie(other.stage, other.micro_batch, other.forward);
    }

    static bool is_given_by(const PipelineAction& a) { return a.is_forward() || a.gives_input_gradient(); }
    static StageResult of(const PipelineAction& a) { return {a.stage, a.micro_batch, a.is_forward()}; }
    // What the action waits for.
    static StageResult before(const PipelineAction& a) {
        const std::int64_t stage = a.stage;
        return {a.is_forward() ? stage - 1 : stage + 1, a.micro_batch, a.is_forward()};
    }
};

// "F", "F+B".
std::string kinds_of(const std::vector<PipelineAction>& actions);

// By rank number: the planned computations of a step, without times.
std::map<int, std::vector<PlannedCell>> planned_cells(const std::vector<schema::ScheduleRow>& schedule);

// Sets the times of all planned cells of the step, from its start on, and planned_ns. Without a plan for
// every rank, or if it waits for something forever, the times stay empty and planned_ns 0.
void replay_plan(PipelineStep& step);

}  // namespace shardscope::traces::analysis
