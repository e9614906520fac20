// The picture of a plan: each configuration as a point of memory against time, the Pareto front joined, the
// limit as a line. It draws what plan_picture() made. For scripts: "plan.chart", and "plan.point.<row>" for
// each point of the front and the chosen one. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <imgui.h>

#include "viewer/panels/plan/plan_picture.h"

namespace shardscope::viewer::panels {

struct PlanChartEvents {
    std::optional<std::size_t> hovered, clicked, opened;  // indices into PlanList::items
};

struct PlanChartLook {
    PlanTime time = PlanTime::sample;
    PlanMemory memory = PlanMemory::peak;
    std::optional<std::size_t> chosen;  // index into PlanList::items
    // By index into PlanList::items: whether the table shows it; others are drawn pale. Empty: all.
    std::vector<bool> in_table;
};

PlanChartEvents draw_plan_chart(const PlanList& list, const PlanPicture& picture, const PlanChartLook& look,
                                ImVec2 size);

}  // namespace shardscope::viewer::panels
