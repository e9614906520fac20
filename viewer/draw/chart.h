// Charts on an ImDrawList: a frame with axes, a stacked area of a folded curve, stacked bars, a donut, a
// marker and a cross-hair. Numbers come from traces/analysis, arithmetic from axis.h and fold.h. Drawing
// layer (Dear ImGui); frame thread only. Screen pixels; colours are the caller's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "viewer/draw/axis.h"
#include "viewer/draw/fold.h"
#include "viewer/draw/plot.h"

namespace shardscope::viewer::draw {

// The inside of a chart: where it is, how values map to pixels, whether the mouse is in it.
struct Chart {
    ImVec2 min, max;
    LinearScale x, y;  // y grows upwards: y.from is the bottom
    ImDrawList* draw = nullptr;
    bool hovered = false;
    float width() const { return max.x - min.x; }
    float height() const { return max.y - min.y; }
};

struct ChartInside {
    float left = 0, right = 0;  // on the screen
};

struct ChartAxes {
    double x_low = 0, x_high = 1, y_high = 1;
    double x_zero = 0;  // subtracted from the labels of the x ticks
    AxisUnit x_unit = AxisUnit::nanoseconds, y_unit = AxisUnit::bytes;
    bool x_ticks = true;
    bool x_whole = false;  // ticks of a plain number at whole numbers only
    double y_low = 0;      // negative if there are negative values
    float label_room = 0;  // least width of the y labels: aligns the chart with what is above it
    // Where the inside of the chart is from left to right; none: as wide as its size and labels allow.
    std::optional<ChartInside> inside;
    // Logarithmic axes: low and high are positive, and Chart::x and y map the values' log10.
    bool x_log = false, y_log = false;
};

// Takes `size` in the current window, draws background, grid, ticks and labels, and catches the mouse.
Chart begin_chart(const char* id, ImVec2 size, const ChartAxes& axes);

using CategoryColors = std::array<ImU32, traces::schema::kMemoryCategories>;

// The stack of every column: solid up to its lowest moment, pale up to its highest.
void stacked_area(const Chart& chart, std::span<const FoldedColumn> columns, const CategoryColors& colors);

// A step line: the extremes of the columns, joined.
void stepped_line(const Chart& chart, std::span<const LineColumn> columns, ImU32 color, float thick);

// The line through folded points; each column as wide as the chart's width divided by `count`.
void folded_line(const Chart& chart, std::span<const PlotColumn> columns, int count, ImU32 color,
                 float thick);

// A horizontal line at y with a label above its left or right end.
void level_line(const Chart& chart, double y, ImU32 color, std::string_view label, bool label_right = true);
// A vertical line at x; the label is beside its top if it fits.
void marker_line(const Chart& chart, double x, ImU32 color, std::string_view label);
// A thin vertical line under the mouse over the chart's height.
void crosshair(const Chart& chart);

struct Segment {
    double value = 0;
    ImU32 color = 0;
    std::string label;  // for the tooltip and, where it fits, on the bar
};

// A horizontal bar of segments; `full` is the value of the whole width. Returns the index of the segment
// under the mouse or -1. Segments narrower than their text show none.
int stacked_bar(ImVec2 at, ImVec2 size, std::span<const Segment> segments, double full, bool labels);

// A ring of segments clockwise from the top with two lines of text in the middle. Takes size x size pixels.
// Returns the index of the segment under the mouse or -1.
int donut(const char* id, float size, std::span<const Segment> segments, std::string_view big,
          std::string_view small);

// Black or white, whichever reads better on `color`.
ImU32 text_on(ImU32 color);
// The colour at `share` of its opacity.
ImU32 faded(ImU32 color, float share);

}  // namespace shardscope::viewer::draw
