// The rows of the Execution Summary's tables, from the results of traces/analysis. Times in microseconds of a
// step. No Dear ImGui; any thread.
#pragma once

#include <memory>

#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/summary.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer {

// The mean step of a rank by category: the whole first, then what the summary has. Not `stepped`: of a trace
// that names no steps, all of it.
std::shared_ptr<const TableModel> category_times(const traces::ExecutionSummary& summary,
                                                 const traces::RankSummary& rank, bool stepped = true);

// A row for every kept step of a rank: its window, its split, how busy the device was, the loss where the run
// recorded it. `details`: of the same rank and selection, nullptr while it is worked out.
std::shared_ptr<const TableModel> step_times(const traces::ExecutionSummary& summary,
                                             const traces::RankSummary& rank,
                                             const traces::RankStepDetails* details);

// A row for every rank: its mean step and the split of it.
std::shared_ptr<const TableModel> rank_times(const traces::ExecutionSummary& summary);

}  // namespace shardscope::viewer
