// The strip of the whole trace above the ruler, with the visible part as a window in it that the mouse moves,
// stretches or sets anew. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <imgui.h>

#include "viewer/model/marks.h"
#include "viewer/model/session.h"
#include "viewer/timeline/minimap.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

class MinimapView {
  public:
    static float height();
    // Draws from `min` to `max` on the screen. `map` may be nullptr: then only the window is drawn.
    void draw(model::OpenTrace& entry, const TimelinePage& page, const Minimap* map,
              const model::MarkBook& marks, ImVec2 min, ImVec2 max);

  private:
    enum class Drag { none, move, from, to, anew };
    void handle_mouse(model::OpenTrace& entry, const TimelinePage& page, const model::TimeView& view,
                      ImVec2 min);

    Drag drag_ = Drag::none;
    std::int64_t anchor_ = 0;  // the instant at which the drag began
    model::TimeRange before_;  // the visible range at that time
    bool moved_ = false;
};

}  // namespace shardscope::viewer::timeline
