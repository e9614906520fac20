// Actions on rows: the menu of a row's name and of an event, dragging names to another place, and the same by
// keys for one row. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <imgui.h>

#include "viewer/model/session.h"
#include "viewer/timeline/gestures.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

class RowMenu {
  public:
    // Opens menus that gestures request, moves the dragged row, draws the open menu. Returns the id of an
    // action that was chosen from the event's menu, or empty.
    std::string draw(model::Session& session, TimelinePage& page, const Gestures& gestures);

    // "pin_row", "hide_row", "row_up", "row_down", "fold_row", "show_rows", "group_rows": applied to the row
    // under the mouse or, if there is none, the selected event's. True if `action` is one of these.
    bool act(std::string_view action, model::Session& session, TimelinePage& page);

  private:
    const Row* row_meant(const model::Session& session, const TimelinePage& page) const;
    void drag(model::Session& session, TimelinePage& page, const Gestures& gestures);
    void draw_row_menu(model::Session& session, TimelinePage& page);
    static std::string draw_event_menu(const model::Session& session);

    std::string key_;      // of the row whose menu is open
    std::string dragged_;  // of the row that is being dragged
    std::string before_;   // the row before which it would be placed; empty: last
};

}  // namespace shardscope::viewer::timeline
