// One row of a plan in words and figures: what it is, the composition of its peak, why it loses, the memory
// by formula if the file has it, and the available actions. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <string>
#include <vector>

#include "traces/store/plan/plan_parts.h"
#include "viewer/model/session.h"
#include "viewer/panels/plan/plan_rows.h"

namespace shardscope::viewer::panels {

// `plan_file`: names the simulated trace. `parts`: of all rows; null while they are read. For scripts:
// "plan.open", "plan.cancel", "plan.copy_job", "plan.save_job", "plan.copy_flags", "plan.value.<label>",
// "plan.why", "plan.error", "plan.progress".
void draw_plan_details(model::Session& session, const PlanList& list, const PlanItem& item,
                       const std::string& plan_file, const std::vector<traces::store::PlanPart>* parts);

// Shows the row's trace: the one that was written beside the plan or simulated before; otherwise begins to
// simulate it. Does nothing while another is being simulated.
void open_plan_row(model::Session& session, const traces::store::Trace& plan, const PlanItem& item,
                   const std::string& plan_file);

// Asks where to save the row's job, as "row-12.toml".
void save_plan_job(model::Session& session, const PlanItem& item);

}  // namespace shardscope::viewer::panels
