// The panels in the order of their tabs.
#include "viewer/panels/panel.h"

namespace shardscope::viewer {

std::vector<std::unique_ptr<Panel>> make_panels() {
    std::vector<std::unique_ptr<Panel>> panels;
    panels.push_back(make_runs_panel());
    panels.push_back(make_timeline_panel());
    panels.push_back(make_modules_panel());
    panels.push_back(make_units_panel());
    panels.push_back(make_memory_panel());
    panels.push_back(make_summary_panel());
    panels.push_back(make_operators_panel());
    panels.push_back(make_kernels_panel());
    panels.push_back(make_collectives_panel());
    panels.push_back(make_distributed_panel());
    panels.push_back(make_shardmap_panel());
    panels.push_back(make_idle_panel());
    panels.push_back(make_advice_panel());
    panels.push_back(make_compare_panel());
    panels.push_back(make_query_panel());
    panels.push_back(make_plan_panel());
    return panels;
}

}  // namespace shardscope::viewer
