// The parts of the timeline panel. Frame thread only.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <imgui.h>

#include "viewer/model/marks.h"
#include "viewer/model/session.h"
#include "viewer/timeline/area_view.h"
#include "viewer/timeline/details_view.h"
#include "viewer/timeline/find_bar.h"
#include "viewer/timeline/gestures.h"
#include "viewer/timeline/marks_view.h"
#include "viewer/timeline/minimap_view.h"
#include "viewer/timeline/other_run.h"
#include "viewer/timeline/overlays.h"
#include "viewer/timeline/row_menu.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

// Everything that is kept for an open trace.
struct TraceOnPage {
    TraceOnPage(const model::TracePtr& trace, std::shared_ptr<model::MarkFile> kept)
        : page(trace), mark_file(std::move(kept)) {}
    // For a reloaded trace: keeps what does not depend on its events.
    TraceOnPage(const model::TracePtr& trace, TraceOnPage&& before)
        : page(trace), mark_file(std::move(before.mark_file)), marks_view(std::move(before.marks_view)) {
        page.read_again = true;
        page.scroll = before.page.scroll;
        page.shown_rank = before.page.shown_rank;
        page.history = std::move(before.page.history);
        page.measure = before.page.measure;
    }
    TimelinePage page;
    std::shared_ptr<model::MarkFile> mark_file;
    model::MarkFile& marks = *mark_file;
    MarksView marks_view;
};

// The parts that exist once, for all traces.
struct TimelineParts {
    Gestures gestures;
    MinimapView minimap;
    FindBar find;
    DetailsView details;
    AreaView area;
    bool area_in_front = false;  // of the selected event's fields
    RowMenu row_menu;
    OtherRun other;
    bool focus_filter = false;  // the filter field of the rows gets the keyboard focus
};

// --- Carries out the timeline's actions, by their ids (app/actions.cpp). Drawing layer (it reads
// the mouse); frame thread only.

// Acts on the active trace, to which `on` belongs. Does nothing for an id that is not an action of the
// timeline.
void do_timeline_action(std::string_view action, model::Session& session, TraceOnPage& on,
                        TimelineParts& parts);

// --- The two lines above the timeline: trace and rank, the names of rows, the colours of bars, finding,
// measuring, marks; and below it the legend with the visible range.

struct ToolbarState {
    bool& measuring;
    bool& marks_shown;
    bool& focus_filter;     // the filter field of the rows is requested
    std::size_t marks = 0;  // number of marks
    OtherRun& other;
};

// Returns the id of the action that was clicked ("back"), or empty.
std::string draw_timeline_toolbar(model::Session& session, TimelinePage& page, FindBar& find,
                                  ToolbarState state);

// --- One picture of the timeline: missing parts are folded or requested, then everything is painted.

// Computed in the background, nullptr until then: the paints of these tracks in the session's colour mode;
// and the times when at least one of a group's tracks is busy, for its summary strip.
std::shared_ptr<const TrackPaints> paints_of(
    model::Session& session, const model::TracePtr& trace, const std::shared_ptr<const Tracks>& tracks,
    const std::shared_ptr<const traces::analysis::TraceWaits>& waits);
std::shared_ptr<const Lane> busy_of(model::Session& session, const model::TracePtr& trace,
                                    const std::shared_ptr<const Tracks>& tracks, const RowGroup& group);

// Updates the page's colours; those by kind are used until others are ready.
void update_paints(model::Session& session, TimelinePage& page);

RowHeights row_heights();

// Folds the rows in sight for a view, into at most so many rectangles.
void fold_rows(model::Session& session, const TimelinePage& page, const model::TimeView& view,
               FoldedRows& folded, std::size_t most);

// The tooltip of an event under the mouse.
void event_tip(const traces::store::Trace& trace, model::SelectedEvent event, const Hit& hit);

void paint_timeline(ImDrawList& draw, model::Session& session, TimelinePage& page, const OverlayScene& scene);

}  // namespace shardscope::viewer::timeline
