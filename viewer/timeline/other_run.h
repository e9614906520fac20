// Another open run under the timeline of the active one, on its time axis: each step begins where the step of
// the same number begins there (step_alignment.h). Its rows fold, scroll and show their events as above; the
// wheel and a drag move the time of both; a double click makes it the active run. Items: "timeline.other"
// (the choice), "timeline.other.<trace>" in its list, "timeline.other.rows", "timeline.other.step.<number>",
// "timeline.other.row.<key>", "timeline.other.event.<label>". Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <imgui.h>

#include "viewer/model/session.h"
#include "viewer/timeline/fold_lane.h"
#include "viewer/timeline/step_alignment.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

class OtherRun {
  public:
    // nullptr: none, or the chosen one is the active run.
    model::OpenTrace* chosen(model::Session& session) const;
    void choose(const model::TracePtr& trace) { trace_ = trace; }
    void choose_next(model::Session& session);  // of the other open runs; after the last one none
    // The choice among the open runs, as an item of a toolbar that is `width` wide.
    void draw_choice(model::Session& session, float width);
    // Of a trace that was closed, or reloaded if it has a successor.
    void forget(const traces::store::Trace& trace, const model::TracePtr& successor);

    // Draws the chosen run between two corners. `above`: the active run's page, laid out in this frame.
    void draw(model::Session& session, const TimelinePage& above, ImVec2 min, ImVec2 max);

  private:
    // One part of the alignment on the screen.
    struct Part {
        AlignedPart aligned;
        TimelineArea area;
        model::TimeView view;
        FoldedRows folded;
        MemoryRows memory;
        CounterRows counters;
    };
    void begin(model::Session& session, const model::OpenTrace& entry, const TimelinePage& above);
    void lay_out(model::Session& session, model::OpenTrace& entry, const TimelinePage& above, ImVec2 min,
                 ImVec2 max);
    void place_parts(const model::OpenTrace& active, const TimelinePage& above);
    void take_mouse(model::Session& session, model::OpenTrace& entry, const TimelinePage& above);
    void find_hovered(ImVec2 mouse);
    void make_active(model::Session& session, model::SelectedEvent event);
    void paint(model::Session& session, const model::OpenTrace& entry, const TimelinePage& above);
    TimelinePicture picture_of(model::Session& session, const Part& part, const TimelineArea& area);
    void paint_part(ImDrawList& draw, model::Session& session, Part& part);
    void paint_heading(ImDrawList& draw, const model::Session& session, const model::OpenTrace& entry) const;
    void name_items(const Part& part) const;

    std::weak_ptr<const traces::store::Trace> trace_;
    std::unique_ptr<TimelinePage> page_;
    traces::store::RankIndex rank_;  // whose steps are aligned
    model::TracePtr aligned_with_;
    traces::store::RankIndex aligned_rank_;
    StepAlignment alignment_;
    std::vector<Part> parts_;
    Part nothing_;  // while a gap between the other run's steps is all that is in sight
    bool each_step_ = true;
    std::optional<Hit> hit_;
};

}  // namespace shardscope::viewer::timeline
