// The pane below the timeline with the statistics of the marked area, or of all events of one name: a table
// by name, kind, module, unit or rank, and a histogram of the durations of the chosen row, whose bins can be
// walked. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "traces/analysis/area/area.h"
#include "viewer/model/latest_work.h"
#include "viewer/model/session.h"
#include "viewer/tables/table.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

class AreaView {
  public:
    static float height(float room);  // of the pane, in a page of this height
    // Fills the content region from the cursor. Returns the id of the action that was clicked ("no_area"), or
    // empty. `with_event`: an event is selected, whose pane a button shows instead.
    std::string draw(model::Session& session, TimelinePage& page, ImVec2 size, bool with_event);

    // Goes to the next or previous event of the chosen bin.
    void walk(model::Session& session, TimelinePage& page, bool forwards);
    // The event to which the walk went last.
    const model::SelectedEvent& walked() const { return walked_; }
    // The table as text, in the shown order; empty while it is computed.
    std::string copied(bool csv) const;

    // `replaced`: the trace was read again, and its successor is shown.
    void forget(const traces::store::Trace& trace, bool replaced);
    bool busy() const { return report_.busy() || spread_.busy() || bin_.busy(); }

  private:
    struct Spread {  // durations of one row of the table, or of all events
        traces::store::EventList events;
        traces::analysis::DurationBins bins;
    };

    void update(const model::MarkedArea& marked, const TimelinePage& page);
    std::string draw_head(const model::Session& session, const TimelinePage& page, bool with_event);
    void draw_groups(ImVec2 size);
    void draw_histogram(model::Session& session, TimelinePage& page, ImVec2 size);
    void draw_walk(model::Session& session, TimelinePage& page);
    std::string bin_text() const;

    int by_ = static_cast<int>(traces::analysis::GroupBy::name);
    bool of_name_ = false;  // the area is that of a name; `by_other_` is the choice for the other kind
    int by_other_ = static_cast<int>(traces::analysis::GroupBy::module);
    model::LatestWork<traces::analysis::AreaReport> report_;
    model::LatestWork<Spread> spread_;
    model::LatestWork<traces::store::EventList> bin_;
    std::shared_ptr<const traces::analysis::AreaReport> shown_;
    std::shared_ptr<const tables::TableModel> model_;
    tables::TableState table_;
    model::MarkedArea shown_of_;  // of the last frame
    int shown_by_ = -1;
    std::string key_;           // of the report
    std::optional<int> group_;  // the chosen row's; none: all events
    std::shared_ptr<const Spread> durations_;
    std::optional<std::size_t> chosen_bin_;
    std::shared_ptr<const traces::store::EventList> walk_;  // the events of the chosen bin
    model::SelectedEvent walked_;
};

}  // namespace shardscope::viewer::timeline
