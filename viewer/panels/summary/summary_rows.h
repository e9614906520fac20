// The rows of the Execution Summary's tables, from the results of traces/analysis. Times in microseconds per
// step. No Dear ImGui; any thread.
#pragma once

#include <memory>

#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/summary.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

// The mean step of a rank by category: the whole first, then the summary's categories. If not `stepped`: the
// whole trace, which names no steps.
std::shared_ptr<const tables::TableModel> category_times(const traces::analysis::ExecutionSummary& summary,
                                                         const traces::analysis::RankSummary& rank,
                                                         bool stepped = true);

// A row for every kept step of a rank: its window, its split, how busy the device was, the loss if the run
// recorded it. `details`: of the same rank and selection, nullptr while they are computed.
std::shared_ptr<const tables::TableModel> step_times(const traces::analysis::ExecutionSummary& summary,
                                                     const traces::analysis::RankSummary& rank,
                                                     const traces::analysis::RankStepDetails* details);

// A row for every rank: its mean step and that step's split.
std::shared_ptr<const tables::TableModel> rank_times(const traces::analysis::ExecutionSummary& summary);

}  // namespace shardscope::viewer::panels
