// What the chunks in flight of a stage keep on a rank: device memory that was allocated while the host ran
// the stage's forwards and that is still allocated when a forward ends. Definition: docs/definitions.md,
// "Pipeline".
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/pipeline/timeline.h"

namespace shardscope::traces::analysis {

struct StageMemory {
    int stage = 0, rank = 0;
    int chunks = 0;          // the most in flight: forward begun, backward (B or W) not ended
    std::int64_t bytes = 0;  // the most that they keep; 0: the trace has no allocations in its forwards
    int chunks_then = 0;     // in flight when they do
};
Fields<StageMemory> stage_memory_fields();

// By stage, then rank, of the timeline's steps and the ranks that are selected. Activations only, if the
// rank's allocations have categories.
std::vector<StageMemory> stage_memory(const store::Trace& trace, const PipelineTimeline& timeline,
                                      const Selection& selection);

}  // namespace shardscope::traces::analysis
