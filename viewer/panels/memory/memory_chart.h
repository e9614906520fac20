// The memory curve of one rank, stacked by category, with the allocations in order, each equally wide: even a
// very short step shows its shape. Keeps the fold of the last frame, which is computed again only when curve,
// part or width change. Drawing layer; frame thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/analysis/memory/memory.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/fold.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {

class MemoryChart {
  public:
    struct Input {
        const traces::store::Trace* trace = nullptr;
        traces::store::RankIndex rank_index;
        std::span<const traces::analysis::MemoryPoint> curve;  // the part that is shown
        const traces::analysis::RankMemory* memory = nullptr;
        std::int64_t top = 0;                // bytes: value at the top of the chart, 0: the peak's
        std::optional<std::int64_t> cursor;  // ns: a line at the last point at or before it
    };

    // Draws into the current window and takes `size`. Returns the time of the point that was clicked.
    std::optional<std::int64_t> draw_in_order(const Input& input, ImVec2 size);

  private:
    struct Shown {  // what `columns_` was folded from
        const traces::analysis::MemoryPoint* curve = nullptr;
        std::size_t size = 0;
        int columns = 0;
        bool operator==(const Shown&) const = default;
    };

    Shown shown_;
    std::vector<draw::FoldedColumn> columns_;
};

// The part of the curve that belongs to the step of the peak; a part around the peak if it is in no step.
struct CurvePart {
    std::size_t first = 0, count = 0;
    std::int64_t step = -1;  // the step's number, -1 none
};
CurvePart part_of_peak(const traces::store::Trace& trace, traces::store::RankIndex rank,
                       std::span<const traces::analysis::MemoryPoint> curve, std::int64_t peak_time_ns);

// --- Memory over time, on the timeline's own visible range: the stack of categories of one rank, lines over
// it (the pool's reserved bytes, other ranks, another run), steps, the peak and the cursor. The mouse works
// as on the timeline.

struct MemoryLine {
    const draw::LineCurve* line = nullptr;
    theme::Color color = 0;
    std::string label;       // in the tooltip and beside the name of the line
    std::int64_t shift = 0;  // ns to be added to its times
    float thickness = 1.5F;
};

struct MemoryTimeChart {
    model::OpenTrace* entry = nullptr;    // already read; its visible range is shown, and the mouse moves it
    traces::store::RankIndex rank_index;  // the steps of this rank are drawn behind the curves
    const draw::CategoryCurve* stack = nullptr;  // nullptr: only lines
    std::span<const MemoryLine> lines;
    struct Peak {
        std::int64_t time = 0, bytes = 0;
    };
    std::optional<Peak> peak;
    std::optional<model::TimeAxis> axis;  // the chart's inside is exactly above or below it
};

// Draws into the current window and takes `size`. `item`: the name of its place for scripts.
void draw_memory_over_time(const char* item, const MemoryTimeChart& input, ImVec2 size);

draw::CategoryColors memory_category_colors();
// Adds "Allocated" and its categories in the order of the stack to an open tooltip; nullptr: no allocations
// yet.
void memory_tip_rows(const traces::analysis::MemoryPoint* point);

}  // namespace shardscope::viewer::panels
