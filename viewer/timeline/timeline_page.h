// The timeline's state for one open trace: its rows and their places on the screen, their folded contents,
// the scroll, what is under the mouse. The parts of the page (gestures, overlays, details) work on this one
// struct. Frame thread only. Times in nanoseconds, positions in pixels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/waits/wait_names.h"
#include "viewer/draw/text.h"
#include "viewer/model/session.h"
#include "viewer/timeline/area_rows.h"
#include "viewer/timeline/counter_fold.h"
#include "viewer/timeline/folded_rows.h"
#include "viewer/timeline/gap_names.h"
#include "viewer/timeline/hit_marks.h"
#include "viewer/timeline/links.h"
#include "viewer/timeline/measure.h"
#include "viewer/timeline/memory_rows.h"
#include "viewer/timeline/painter.h"
#include "viewer/timeline/rows.h"
#include "viewer/timeline/zoom_history.h"

namespace shardscope::viewer::timeline {

struct TimelinePage {
    explicit TimelinePage(model::TracePtr opened);

    model::TracePtr trace;
    std::shared_ptr<const Tracks> tracks;  // nullptr while they are being computed
    KeptLayout kept;
    const RowLayout* rows = nullptr;  // of this frame; made before any query for a row's place
    TimelineArea area;
    FoldedRows folded_rows;
    MemoryRows memory;
    CounterRows counters;
    std::shared_ptr<const traces::analysis::ExecutionSummary>
        summary;                                // nullptr while computed, or if not needed
    std::shared_ptr<const TrackPaints> paints;  // of the chosen colour mode; nullptr while computed
    std::vector<draw::LegendItem> legend;       // of `paints`
    std::shared_ptr<const TrackPaints> legend_from;
    float scroll = 0;
    traces::store::RankIndex scroll_to_rank;
    model::SelectedEvent shown_event;            // the session's selection in the last frame
    std::optional<model::SelectedEvent> reveal;  // its row is to be scrolled into sight in the next frame
    traces::store::RankIndex shown_rank;         // the session's rank in the last frame
    bool read_again = false;                     // the selection was in sight before the reload: not new
    ZoomHistory history;
    std::optional<Measure> measure;
    KeptArea kept_area, kept_drag;
    const ResolvedArea* marked_area = nullptr;      // of this frame; nullptr: none
    std::optional<model::MarkedArea> dragged_area;  // while the mouse marks it
    const ResolvedArea* dragged_rows = nullptr;     // its rows in this frame
    std::shared_ptr<const HitMarks> hits;           // of the search; nullptr: none, or not computed yet
    model::SelectedEvent hovered;
    Links links;  // of the selected event
    std::shared_ptr<const CollectiveIndex> links_from;
    std::shared_ptr<const traces::analysis::TraceWaits> waits;  // nullptr while they are being computed
    GapNames gaps;

    model::TimeSpan whole() const;
    model::TimeView view(const model::OpenTrace& entry) const;
    std::int64_t time_at(const model::OpenTrace& entry, float x) const {
        return view(entry).time(static_cast<double>(x - area.left()));
    }
    float x_of(const model::TimeView& view, std::int64_t time) const { return area.x_of(view, time); }
    float y_of(const Row& row) const;
    const RowLayout& layout() const { return *rows; }
    // Whether there are steps whose device work does not end with their ranges on the host.
    bool has_windows() const { return !trace->steps.empty() && trace->device.size() > 0; }
    const Row* row_at(float y) const { return layout().under(y - area.top(), area.scroll); }
    std::vector<const Row*> rows_in_sight() const { return layout().shown(area.scroll, area.height()); }
    const Lane& lane_of(const Row& row) const;

    // The arrangement's key: that of the row's entry, or of its group.
    const std::string& key_of(const Row& row) const;
    const Row* row_of(model::SelectedEvent event) const;  // nullptr if it is folded or hidden

    // The place of an event's bar; nullopt if its row is folded or hidden.
    struct Box {
        float x0 = 0, x1 = 0, y0 = 0, y1 = 0;
    };
    std::optional<Box> box_of(const model::TimeView& view, model::SelectedEvent event) const;

    // --- moving ---
    static void show(model::OpenTrace& entry, model::TimeSpan span) { entry.visible = {span.from, span.to}; }
    void zoom(model::OpenTrace& entry, std::int64_t anchor, double factor) const;
    void pan_pixels(model::OpenTrace& entry, double pixels) const;
    // Moves the visible time, and the rows, no further than needed to show this event.
    void bring_into_sight(model::OpenTrace& entry, model::SelectedEvent event);
    // Zooms to an event that is in sight but too narrow to be seen.
    void show_closely(model::OpenTrace& entry, model::SelectedEvent event) const;
    // If the row for `reveal` is not laid out, though the trace has it, changes the arrangement so that it
    // will be, and returns true. To be called after the layout.
    bool unfold_revealed(model::RowArrangement& arrangement) const;
    // Where there is less room than in the last frame, reveals the selected event if it was in sight then.
    void keep_in_sight(float height_before);
    void reveal_row();  // scrolls to `reveal`; to be called after the layout

    // --- choosing ---
    void select(model::Session& session, model::SelectedEvent event) const;
    // Selects the event and shows it.
    void go_to(model::Session& session, model::SelectedEvent event);
    void update_links(model::Session& session);  // to be called once a frame
};

}  // namespace shardscope::viewer::timeline
