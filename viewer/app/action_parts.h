// The parts of the action table (actions.h). No Dear ImGui. Frame thread only.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "viewer/app/actions.h"

namespace shardscope::viewer {

std::vector<Action> program_actions();   // File, View, Panels (actions_program.cpp)
std::vector<Action> timeline_actions();  // (actions_timeline.cpp)
std::vector<Action> panel_actions();     // the other panels' actions (actions_panels.cpp)
std::vector<Action> help_actions();      // (actions_program.cpp)

// Hands the action to the panel that is shown: Panel::act().
std::function<void(Program&)> to_panel(std::string_view action);

}  // namespace shardscope::viewer
