// Rows of label, stacked bar and value on one scale, and a histogram of given bins. Drawing layer (Dear
// ImGui); frame thread only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "viewer/draw/chart.h"
#include "viewer/panels/idle/idle_rows.h"

namespace shardscope::viewer::panels {

struct LabelBar {
    std::string label, value;
    std::vector<draw::Segment> segments;  // their labels are shown in the tooltip
    bool chosen = false;
};

struct LabelBarsHit {
    std::optional<std::size_t> clicked;       // a row
    std::optional<std::size_t> row, segment;  // under the mouse
};

// As wide as the room left and `height` high; scrolls if there are more rows. `full`: the value of a whole
// bar. For scripts: "<id>.<label>" at the row's place, with its value.
LabelBarsHit draw_label_bars(const char* id, std::span<const LabelBar> bars, double full, float height);

// Bars over named bins with a title above. `unit` is the unit of the values. The tooltip shows a bin's share.
void draw_histogram(const char* id, std::string_view title, std::span<const HistogramBin> bins,
                    draw::AxisUnit unit, ImU32 color, ImVec2 size);

}  // namespace shardscope::viewer::panels
