// The parts of the timeline panel. Frame thread only.
#pragma once

#include <string>
#include <utility>

#include "viewer/timeline/details_view.h"
#include "viewer/timeline/find_bar.h"
#include "viewer/timeline/gestures.h"
#include "viewer/timeline/marks_file.h"
#include "viewer/timeline/marks_view.h"
#include "viewer/timeline/minimap_view.h"
#include "viewer/timeline/row_menu.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer {

// Everything that is kept for an open trace.
struct TraceOnPage {
    TraceOnPage(const TracePtr& trace, const std::string& path) : page(trace), marks(path) {}
    // For a reloaded trace: keeps what does not depend on its events.
    TraceOnPage(const TracePtr& trace, TraceOnPage&& before)
        : page(trace), marks(std::move(before.marks)), marks_view(std::move(before.marks_view)) {
        page.read_again = true;
        page.scroll = before.page.scroll;
        page.shown_rank = before.page.shown_rank;
        page.history = std::move(before.page.history);
        page.measure = before.page.measure;
    }
    TimelinePage page;
    MarkFile marks;
    MarksView marks_view;
};

// The parts that exist once, for all traces.
struct TimelineParts {
    Gestures gestures;
    MinimapView minimap;
    FindBar find;
    DetailsView details;
    RowMenu row_menu;
    bool focus_filter = false;  // the filter field of the rows gets the keyboard focus
};

}  // namespace shardscope::viewer
