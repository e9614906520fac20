// Makes the panels of kPanelList, in its order.
#include <array>

#include "viewer/app/panel_list.h"
#include "viewer/panels/panel.h"

namespace shardscope::viewer {
namespace {

using Factory = std::unique_ptr<Panel> (*)();

constexpr std::array kFactories = {
    Factory{make_runs_panel}, make_timeline_panel,    make_modules_panel,   make_units_panel,
    make_memory_panel,        make_summary_panel,     make_operators_panel, make_kernels_panel,
    make_collectives_panel,   make_distributed_panel, make_shardmap_panel,  make_idle_panel,
    make_advice_panel,        make_compare_panel,     make_query_panel,     make_plan_panel,
};
static_assert(kFactories.size() == kPanelList.size());

}  // namespace

std::vector<std::unique_ptr<Panel>> make_panels() {
    std::vector<std::unique_ptr<Panel>> panels;
    panels.reserve(kFactories.size());
    for (const Factory make : kFactories) panels.push_back(make());
    return panels;
}

}  // namespace shardscope::viewer
