// The mouse gestures of the timeline: wheel to zoom, drag to move, drag on the ruler to set the limit range,
// drag the edges of the limit and the measure, measure, mark an area of rows, choose, hover. Drawing layer
// (Dear ImGui); frame thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <imgui.h>

#include "viewer/model/session.h"
#include "viewer/timeline/fold_lane.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

class Gestures {
  public:
    bool measuring = false;  // a plain drag measures instead of moving

    // Takes the area for the mouse and carries out its gestures. `catches`: instants apart from events that a
    // measure snaps to (marks). `covered`: an item that handles the mouse itself (a mark's tag) is under it;
    // what is beneath is neither hovered nor chosen.
    void handle(model::Session& session, TimelinePage& page, const std::vector<std::int64_t>& catches,
                bool covered);

    // What was requested in this frame, for the panel to handle.
    bool wants_menu() const { return wants_menu_; }  // right click
    const Row* clicked_name() const { return clicked_name_; }
    bool over_time() const { return over_time_; }  // the mouse is on rows or ruler
    bool dragging_scrollbar() const { return drag_ == Drag::scroll; }
    // The row whose name is being dragged, and the mouse's y on the screen.
    std::optional<int> dragged_row() const;
    const std::optional<Hit>& hit() const { return hit_; }  // under the mouse, of page.hovered

  private:
    enum class Drag {
        none,
        pan,
        limit,
        limit_from,
        limit_to,
        measure,
        measure_from,
        measure_to,
        area,
        scroll,
        name,
        other  // pressed on an item over the rows
    };

    void press(model::OpenTrace& entry, TimelinePage& page, ImVec2 mouse, bool right, bool covered);
    Drag drag_for(const model::OpenTrace& entry, const TimelinePage& page, ImVec2 mouse, bool right) const;
    void go_on(model::OpenTrace& entry, TimelinePage& page, ImVec2 mouse, ImVec2 delta);
    void release(model::Session& session, TimelinePage& page, bool right);
    void turn_wheel(model::OpenTrace& entry, TimelinePage& page, ImVec2 mouse);
    void find_hovered(const model::OpenTrace& entry, TimelinePage& page, ImVec2 mouse);
    // The row under the mouse, or the nearest one in sight.
    static std::size_t nearest_row(const TimelinePage& page, float y);
    std::int64_t caught(const model::OpenTrace& entry, const TimelinePage& page, ImVec2 mouse) const;

    Drag drag_ = Drag::none;
    bool moved_ = false, right_ = false, over_time_ = false, wants_menu_ = false;
    std::int64_t drag_from_ = 0;
    ImVec2 pressed_at_;
    int pressed_row_ = -1;
    std::size_t area_row_ = 0;  // where the area's drag began
    const Row* clicked_name_ = nullptr;
    std::optional<Hit> hit_;
    std::vector<std::int64_t> catches_;
};

}  // namespace shardscope::viewer::timeline
