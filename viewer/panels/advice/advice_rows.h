// The card of a finding: its figures formatted for reading, the order of the cards, the panel with more
// details, and the way to a place in the trace. Pure but for that; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/advice/advice_place.h"
#include "viewer/model/session.h"

namespace shardscope::viewer::panels {

// "1.23 ms a step", "12.34 %", "108.1 MiB", "3".
std::string figure_text(const traces::analysis::AdviceFigure& figure);

// Indices of the findings: serious first, else in the report's order.
std::vector<std::size_t> by_weight(const traces::analysis::AdviceReport& report);

// The panel with more details about a rule's subject; "runs" if it is about the configuration. `units`: the
// trace has FSDP units, so that their panel shows something.
std::string_view panel_of(std::string_view rule, bool units = true);

// Whether the finding has a place in the trace to show (traces/analysis/advice/advice_place.h); false: it
// concerns the configuration.
bool has_place(std::string_view rule);

// Shows the place in the timeline of the active trace: frame thread only.
void go_to_place(model::Session& session, const traces::analysis::AdvicePlace& place);

}  // namespace shardscope::viewer::panels
