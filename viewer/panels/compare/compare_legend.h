// What the pages of the compare panel share: the legend of runs and a button of several. Drawing layer (Dear
// ImGui); frame thread only.
#pragma once

#include <string>
#include <vector>

#include "viewer/panels/compare/compare_runs.h"

namespace shardscope::viewer {

// The run's colour, its number and its name, in as many lines as the width asks for.
void draw_run_legend(const ComparedRuns& runs);

// One of several alternative views: highlighted if it is chosen. True: it was clicked. `item`: for scripts.
bool choice_button(const char* label, bool chosen, const std::string& item);

std::vector<std::string> names_of(const ComparedRuns& runs);

}  // namespace shardscope::viewer
