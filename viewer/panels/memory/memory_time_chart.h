// Memory over time, on the timeline's own visible range: the stack of categories of one rank, lines over it
// (the pool's reserved bytes, other ranks, another run), steps, the peak and the cursor. The mouse works as
// on the timeline. Drawing layer; frame thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "viewer/draw/chart.h"
#include "viewer/model/session.h"
#include "viewer/panels/memory/memory_fold.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer {

struct MemoryLine {
    const LineCurve* line = nullptr;
    Color color = 0;
    std::string label;       // in the tooltip and beside the name of the line
    std::int64_t shift = 0;  // ns to be added to its times
    float thickness = 1.5F;
};

struct MemoryTimeChart {
    OpenTrace* entry = nullptr;            // already read; its visible range is shown, and the mouse moves it
    int rank_index = 0;                    // the steps of this rank are drawn behind the curves
    const CategoryCurve* stack = nullptr;  // nullptr: only lines
    std::span<const MemoryLine> lines;
    struct Peak {
        std::int64_t time = 0, bytes = 0;
    };
    std::optional<Peak> peak;
};

// Draws into the current window and takes `size`. `item`: the name of its place for scripts.
void draw_memory_over_time(const char* item, const MemoryTimeChart& input, ImVec2 size);

CategoryColors memory_category_colors();
// Adds "Allocated" and its categories in the order of the stack to an open tooltip; nullptr: no allocations
// yet.
void memory_tip_rows(const traces::MemoryPoint* point);

}  // namespace shardscope::viewer
