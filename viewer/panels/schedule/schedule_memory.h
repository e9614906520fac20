// The memory of the Schedule panel's ranks on its time axis (memory_at_work()): a line for each rank, of many
// ranks the band from the lowest to the highest, with the chosen rank's line. Drawing layer (Dear ImGui);
// frame thread only.
//
// For scripts: "schedule.memory" (the chart), "schedule.memory.<rank>" with the rank's peak in the visible
// time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/fold.h"
#include "viewer/panels/schedule/schedule_rows.h"

namespace shardscope::viewer::panels {

class ScheduleMemory {
  public:
    struct Events {
        bool hovered = false;
        float dragged = 0;  // pixels to the right
    };
    struct Sides {
        float left = 0, right = 0;  // of the time axis, on the screen
    };

    // Requests the curves of the view's ranks.
    void gather(model::Session& session,
                const std::shared_ptr<const traces::analysis::PipelineTimeline>& timeline,
                const ScheduleView& view);
    // Whether there is, or will be, something to draw.
    bool is_known() const { return recorded_; }
    // One sentence for the place of the chart.
    static std::string why_unknown();

    // Takes `height` pixels of the current window.
    Events draw(const ScheduleView& view, model::TimeRange visible, Sides sides, int chosen_rank,
                float height);

    void forget() { *this = {}; }

  private:
    void fold(model::TimeRange visible, int columns);
    bool is_band() const;
    ImU32 line_color(std::size_t row) const;
    void draw_legend(const ScheduleView& view, int chosen_rank) const;
    void draw_band(const draw::Chart& chart) const;
    void draw_tip(const ScheduleView& view, std::int64_t time, int chosen_rank) const;

    bool recorded_ = false, complete_ = false;
    std::vector<std::shared_ptr<const draw::LineCurve>> curves_;  // by row of the view; null: not there yet
    std::vector<std::vector<draw::LineColumn>> columns_;          // folded, by row
    model::TimeRange folded_;
    std::int64_t most_ = 1;  // of the folded columns
};

}  // namespace shardscope::viewer::panels
