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
    // Of the view's ranks, on the device's time axis.
    struct Curves {
        std::vector<draw::LineCurve> rows;  // by row of the view
        draw::LineCurve lowest, highest;    // of many ranks
    };
    static Curves curves_of(const traces::store::Trace& trace,
                            const traces::analysis::PipelineTimeline& timeline,
                            const std::vector<traces::store::RankIndex>& ranks);
    void fold(const ScheduleView& view, model::TimeRange visible, int columns, int chosen_rank);
    bool is_band() const;
    ImU32 line_color(std::size_t row) const;
    void draw_legend(const ScheduleView& view, int chosen_rank) const;
    void draw_band(const draw::Chart& chart) const;
    void draw_tip(const ScheduleView& view, std::int64_t time, int chosen_rank) const;

    bool recorded_ = false;
    std::shared_ptr<const Curves> curves_;                // null: not there yet
    std::vector<std::vector<draw::LineColumn>> columns_;  // folded, by row; of a band the chosen rank's alone
    std::vector<draw::LineColumn> lowest_, highest_;      // folded, of a band
    model::TimeRange folded_;
    int folded_columns_ = 0, folded_rank_ = -1;
    std::int64_t most_ = 1;  // of the folded columns
};

}  // namespace shardscope::viewer::panels
