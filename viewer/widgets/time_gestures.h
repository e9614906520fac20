// The mouse gestures of a chart over time, the same as on the timeline: the wheel zooms about the mouse, a
// drag moves the visible range, Shift and a drag limit all panels to that time, a click puts the cursor
// there, a double-click shows the whole trace. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include "viewer/draw/chart.h"
#include "viewer/model/session.h"

namespace shardscope::viewer {

// To be called right after begin_chart() with the entry's visible range as x.
void time_gestures(OpenTrace& entry, const Chart& chart);

// Painted over such a chart: the time outside the limit range is dimmed, the cursor is a line.
void paint_limit(const OpenTrace& entry, const Chart& chart);
void paint_cursor(const OpenTrace& entry, const Chart& chart, std::string_view label = {});

}  // namespace shardscope::viewer
