// The bubble of a pipeline: how long each rank computes nothing within a step, and why. Definition:
// docs/definitions.md, "Pipeline". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/pipeline/stage_memory.h"
#include "traces/analysis/pipeline/timeline.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// One rank, summed over its kept steps. makespan = busy + idle().
struct PipelineRank {
    int rank = 0;
    std::string place;        // in the mesh (place_in_mesh)
    std::vector<int> stages;  // that it computes, sorted
    bool on_host = false;     // nothing was recorded on its device: the times are those of its ranges
    std::int64_t steps = 0, actions = 0;
    std::int64_t makespan = 0, busy = 0;
    std::int64_t warm_up = 0, peer = 0, communication = 0, host = 0, imbalance = 0, drain = 0;
    int peak_in_flight = 0;         // chunks
    std::int64_t planned = 0;       // computations of a step in SHARD_SCHEDULE; 0: it has none
    std::int64_t other_orders = 0;  // steps that computed in another order

    std::int64_t idle_in_span() const { return peer + communication + host + imbalance; }
    std::int64_t idle() const { return warm_up + idle_in_span() + drain; }
};
Fields<PipelineRank> pipeline_rank_fields();

// The computations of one kind of one stage.
struct StageWork {
    int stage = 0, rank = 0;
    std::string kind;
    std::int64_t count = 0, total = 0, longest = 0;
};
Fields<StageWork> stage_work_fields();

struct PipelineReport {
    bool stepped = true;              // false: the trace has no steps, and all of it is one
    std::vector<PipelineRank> ranks;  // those with actions of a pipeline
    std::vector<StageWork> stages;    // by stage, rank and kind
    std::vector<StageMemory> memory;  // by stage and rank

    // Idle time as a share of all ranks' makespans, in percent.
    double bubble_percent() const;
    double in_span_percent() const;
    double mean_makespan() const;  // of a step
};

PipelineReport pipeline_report(const store::Trace& trace, const Selection& selection = {});
// The same from a timeline of at least the selected steps and time: those of its steps that are selected.
PipelineReport sum_pipeline(const store::Trace& trace, const PipelineTimeline& timeline,
                            const Selection& selection);

}  // namespace shardscope::traces::analysis
