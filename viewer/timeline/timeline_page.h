// What the timeline keeps of one open trace: its rows and where they lie on the screen, what of them is
// folded, the scroll, what is under the mouse. The parts of the page (gestures, overlays, details) work on
// this one struct. Frame thread only. Times in nanoseconds, positions in pixels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/draw/text.h"
#include "viewer/model/session.h"
#include "viewer/timeline/counter_fold.h"
#include "viewer/timeline/folded_rows.h"
#include "viewer/timeline/links.h"
#include "viewer/timeline/measure.h"
#include "viewer/timeline/memory_rows.h"
#include "viewer/timeline/painter.h"
#include "viewer/timeline/rows.h"
#include "viewer/timeline/zoom_history.h"

namespace shardscope::viewer {

struct TimelinePage {
    explicit TimelinePage(TracePtr opened);

    TracePtr trace;
    std::shared_ptr<const Tracks> tracks;  // nullptr while they are being made
    KeptLayout kept;
    const RowLayout* rows = nullptr;  // of this frame; made before anything asks where a row is
    TimelineArea area;
    FoldedRows folded_rows;
    MemoryRows memory;
    CounterRows counters;
    std::shared_ptr<const traces::ExecutionSummary> summary;  // nullptr while it is worked out, or not needed
    std::shared_ptr<const TrackPaints> paints;  // of the colours that are wanted; nullptr while worked out
    std::vector<LegendItem> legend;             // of `paints`
    std::shared_ptr<const TrackPaints> legend_from;
    float scroll = 0;
    std::optional<int> scroll_to_rank;
    SelectedEvent shown_event;            // the session's selection when it was drawn last
    std::optional<SelectedEvent> reveal;  // its row is to come into sight in the next frame
    int shown_rank = -1;                  // the session's when it was drawn last
    bool read_again = false;              // what the session has selected was in sight before: no new choice
    ZoomHistory history;
    std::optional<Measure> measure;
    SelectedEvent hovered;
    Links links;  // of the selected event
    std::shared_ptr<const CollectiveIndex> links_from;

    TimeSpan whole() const;
    TimeView view(const OpenTrace& entry) const;
    std::int64_t time_at(const OpenTrace& entry, float x) const {
        return view(entry).time(static_cast<double>(x - area.left()));
    }
    // On the screen, never further out than a float can say exactly.
    float x_of(const TimeView& view, std::int64_t time) const;
    float y_of(const Row& row) const;
    const RowLayout& layout() const { return *rows; }
    // Steps whose device work ends elsewhere than their ranges on the host do.
    bool has_windows() const { return !trace->steps.empty() && trace->device.size() > 0; }
    const Row* row_at(float y) const { return layout().under(y - area.top(), area.scroll); }
    std::vector<const Row*> rows_in_sight() const { return layout().shown(area.scroll, area.height()); }
    const Lane& lane_of(const Row& row) const;

    // What the arrangement calls it: the key of the row's entry, or of its group.
    const std::string& key_of(const Row& row) const;
    const Row* row_of(SelectedEvent event) const;  // nullptr where it is folded away or hidden

    // Where an event's bar is; nullopt where its row is folded away or hidden.
    struct Box {
        float x0 = 0, x1 = 0, y0 = 0, y1 = 0;
    };
    std::optional<Box> box_of(const TimeView& view, SelectedEvent event) const;

    // --- moving ---
    static void show(OpenTrace& entry, TimeSpan span) { entry.visible = {span.from, span.to}; }
    void zoom(OpenTrace& entry, std::int64_t anchor, double factor) const;
    void pan_pixels(OpenTrace& entry, double pixels) const;
    // Moves the visible time, and the rows, no further than needed to show this.
    void bring_into_sight(OpenTrace& entry, SelectedEvent event);
    // Of what `reveal` asks for: whether its row is not among those laid out, though the trace has it; then
    // the arrangement is changed so that it is. After the page is laid out.
    bool unfold_revealed(RowArrangement& arrangement) const;
    void reveal_row();  // scrolls to what `reveal` asks for; after the page is laid out

    // --- choosing ---
    void select(Session& session, SelectedEvent event) const;
    // ... and shows it.
    void go_to(Session& session, SelectedEvent event);
    void update_links(Session& session);  // once a frame
};

}  // namespace shardscope::viewer
