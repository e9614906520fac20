// One row of a plan in words and figures: what it is, what makes its peak, why it loses, the memory by
// formula where the file has it, and what can be done with it. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <string>
#include <vector>

#include "traces/store/plan/plan_parts.h"
#include "viewer/model/session.h"
#include "viewer/panels/plan/plan_rows.h"

namespace shardscope::viewer {

// `plan_file`: what the simulated trace is called after. `parts`: of all rows; null while they are read.
// For scripts: "plan.open", "plan.cancel", "plan.copy_job", "plan.save_job", "plan.copy_flags",
// "plan.value.<label>", "plan.why", "plan.error", "plan.progress".
void draw_plan_details(Session& session, const PlanList& list, const PlanItem& item,
                       const std::string& plan_file, const std::vector<traces::PlanPart>* parts);

// Shows the row's trace: the one that was written beside the plan, one that was simulated before, or it
// begins to simulate it. Nothing while another is being simulated.
void open_plan_row(Session& session, const traces::Trace& plan, const PlanItem& item,
                   const std::string& plan_file);

// "row-12.toml" of the row; asks where to save it.
void save_plan_job(Session& session, const PlanItem& item);

}  // namespace shardscope::viewer
