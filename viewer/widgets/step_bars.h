// Stacked bars side by side: the time of each step of a rank by category, or of the mean step of each rank.
// Drawing layer; frame thread only.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/time/summary.h"

namespace shardscope::viewer {

struct TimeBar {
    std::int64_t number = 0;  // of the step or the rank, shown below it
    std::array<double, traces::kTimeCategories> ns{};
    double total() const;
};
std::vector<TimeBar> bars_of_steps(const traces::RankSummary& rank);
std::vector<TimeBar> bars_of_ranks(const traces::ExecutionSummary& summary);

// Draws the bars in `height` pixels over the whole width; bars that do not fit are reached by scrolling. A
// bar is one step or rank, never a mean of several. `what`: "Step", "Rank", in the tooltip. For scripts:
// "<item>.<number>". Returns the index of the bar that was clicked, or -1.
int draw_time_bars(std::string_view item, std::string_view what, const std::vector<TimeBar>& bars,
                   float height);

}  // namespace shardscope::viewer
