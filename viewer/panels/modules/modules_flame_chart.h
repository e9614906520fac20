// Draws a FlameChart on a time axis of its own: the wheel zooms at the mouse, dragging pans, a click selects
// an event, a double-click shows it in the timeline. Drawing layer (Dear ImGui); frame thread only.
//
// For scripts: "modules.flame" (the whole), "modules.flame.<lane>.<n>" (the n-th bar in sight of a lane, both
// from 0) with the bar's name.
#pragma once

#include <memory>

#include <imgui.h>

#include "viewer/model/session.h"
#include "viewer/panels/modules/modules_flame.h"

namespace shardscope::viewer::panels {

class FlameView {
  public:
    // Takes `size` in the current window.
    void draw(model::Session& session, const model::TracePtr& trace,
              const std::shared_ptr<const FlameChart>& chart, ImVec2 size);
    void fit() { shown_.reset(); }  // shows the whole call again

  private:
    struct Bar {
        model::SelectedEvent event;
        model::TimeRange time;
        std::size_t count = 1;  // events that share its pixels
    };
    void take_mouse(bool hovered, float left, float width);
    void draw_axis(const model::TimeView& view, ImVec2 at, float width, float height) const;
    void draw_lane(const model::Session& session, const traces::store::Trace& trace, const FlameLane& lane,
                   std::size_t number, const model::TimeView& view, ImVec2 at, float left, float height);

    std::shared_ptr<const FlameChart> chart_;
    std::shared_ptr<const FlameChart> shown_;  // the chart that `visible_` belongs to
    model::TimeRange visible_;
    std::optional<Bar> hovered_;
    bool dragging_ = false;
};

}  // namespace shardscope::viewer::panels
