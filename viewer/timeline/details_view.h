// The pane below the timeline: every field of the selected event in columns, buttons to its neighbours, and
// links to related events. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <memory>
#include <string>

#include "viewer/model/session.h"
#include "viewer/timeline/event_fields.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

class DetailsView {
  public:
    static float height();  // height of the pane
    // Fills the content region from the cursor to `width`. Returns the id of the action that was clicked
    // ("next_event"), or empty.
    std::string draw(model::Session& session, TimelinePage& page, float width);

    void forget(const traces::store::Trace& trace) {
        if (trace_.get() == &trace) *this = {};
    }

    // The text that "copy" copies.
    std::string copied() const { return fields_text(details_); }

  private:
    void update(model::Session& session, const TimelinePage& page);
    std::string draw_buttons(model::Session& session, TimelinePage& page);
    void draw_links(model::Session& session, TimelinePage& page);
    void draw_fields(float width) const;

    model::SelectedEvent of_;
    model::TracePtr trace_;
    std::shared_ptr<const CollectiveIndex> collectives_;
    std::shared_ptr<const traces::analysis::UnitRanges> units_;
    std::shared_ptr<const traces::analysis::TraceWaits> waits_;
    EventDetails details_;
};

}  // namespace shardscope::viewer::timeline
