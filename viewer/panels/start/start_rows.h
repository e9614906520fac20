// What the Start page's cards lead to. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "traces/analysis/answers/answers.h"

namespace shardscope::viewer::panels {

// The panel with the evidence.
std::string_view panel_of(const traces::analysis::Answer& answer);

// Whether a place in the trace shows the answer.
bool has_place(const traces::analysis::Answer& answer);

// The card's name in scripts: "start.peak", "start.compared.peak".
std::string item_of(const traces::analysis::Answer& answer);

}  // namespace shardscope::viewer::panels
