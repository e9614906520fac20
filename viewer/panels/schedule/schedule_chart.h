// The Schedule panel's picture: rows of ranks over time, the plan above what ran, each box a computation with
// its micro-batch, the bubble shaded by cause; beside each row its bubble. Rows become thinner until they
// fit, then scroll; what is narrower than two pixels shares columns that show each kind's exact part. Drawing
// layer (Dear ImGui); frame thread only.
//
// For scripts: "schedule.row.<rank>" with its bubble, "schedule.cell.<rank>.<action>" ("0F3") with its time,
// "schedule.lanes" (all rows).
#pragma once

#include <optional>
#include <string>

#include <imgui.h>

#include "viewer/panels/schedule/schedule_rows.h"

namespace shardscope::viewer::panels {

// The colour of a kind of span (schedule_rows.h); a second stage's is darker.
ImU32 span_color(int kind, bool second = false);

class ScheduleChart {
  public:
    struct Input {
        const ScheduleView* view = nullptr;
        bool planned = true;        // draw the plan, if there is one
        int chosen_rank = 0;        // its number
        float left = 0, right = 0;  // of the lanes, on the screen
        model::TimeRange visible;
    };
    struct Events {
        const ScheduleRow* row = nullptr;    // under the mouse
        const ScheduleSpan* span = nullptr;  // of its actual ones; null: its name, its figures or the plan
        bool clicked = false;                // on the row
        bool hovers_lanes = false;
        float dragged = 0;  // pixels to the right
    };

    // Takes `height` pixels of the current window, and its width.
    Events draw(const Input& input, float height);

    // Whether the rows need more than `height` and scroll.
    static bool scrolls(const Input& input, float height);
    static float ruler_height();
    // What all rows take of `height`, as high as they can be.
    static float used_height(const Input& input, float height);
    static float names_width(const ScheduleView& view);

  private:
    struct Lane {
        float top = 0, bottom = 0;
    };
    void draw_ruler(const Input& input, ImVec2 at) const;
    void draw_row(const Input& input, const ScheduleRow& row, float top, float height);
    void draw_spans(const Input& input, std::span<const ScheduleSpan> spans, Lane lane, float opacity);
    void draw_largest(std::span<const SpanColumn> columns, float left, Lane lane, float opacity);
    static void draw_labels(const Input& input, const ScheduleRow& row, Lane lane);
    static void draw_planned_labels(const Input& input, const ScheduleRow& row, Lane lane);
    static void draw_names(const Input& input, float left, float top, float height);
    static void draw_figures(const Input& input, float top, float height);
    static void draw_tip(const Input& input, const ScheduleRow& row, std::int64_t time, bool in_plan,
                         Events& events);

    double least_ = 2;  // pixels: widened if a frame would need too many rectangles
    int rectangles_ = 0;
    model::TimeRange seen_;
};

}  // namespace shardscope::viewer::panels
