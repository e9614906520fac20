// Stacked bars, one a step: where the time of each step went. Drawing layer; frame thread only.
#pragma once

#include <cstddef>

#include "traces/analysis/summary.h"

namespace shardscope::viewer {

// Draws the steps of a rank in `height` pixels over the whole width; steps that do not fit are reached by
// scrolling. A bar is one step, never a mean of several. Shows a tooltip. Returns the index of the step
// clicked, or -1.
int draw_step_bars(const traces::RankSummary& rank, float height);

}  // namespace shardscope::viewer
