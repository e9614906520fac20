// Points of two numbers as a line: folded into pixel columns without losing their extremes. Pure arithmetic,
// no drawing; any thread.
#pragma once

#include <span>
#include <vector>

namespace shardscope::viewer::draw {

struct PlotPoint {
    double x = 0, y = 0;
};

struct PlotRange {
    double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
};

// One pixel column of a plot: the extremes of its points.
struct PlotColumn {
    int column = 0;
    double lowest = 0, highest = 0, first = 0, last = 0;  // y; first and last by x
    bool apart = false;                                   // no line leads to it from the column before
};
// Folds points in any order into at most `columns` columns over the range; empty ones are omitted. Where y
// is not a number the line is broken.
std::vector<PlotColumn> fold_plot(std::span<const PlotPoint> points, const PlotRange& range, int columns);

}  // namespace shardscope::viewer::draw
