// The ranges of time that were shown, so that zooming and moving can be undone. It observes the visible range
// and joins successive small moves (turns of the wheel, pixels of a drag) into one step: a step ends when the
// view's length has doubled or halved or half of it has moved out of sight. No clock is used, so that the
// same gestures always give the same steps. Pure; nanoseconds.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "viewer/model/time_view.h"

namespace shardscope::viewer::timeline {

class ZoomHistory {
  public:
    static constexpr std::size_t kMost = 200;  // the oldest are forgotten

    // Records the visible range; once a frame, and before back() or forward().
    void see(model::TimeSpan shown);
    // The range to show instead; nullopt if there is nothing to go back or forward to.
    std::optional<model::TimeSpan> back();
    std::optional<model::TimeSpan> forward();

  private:
    std::optional<model::TimeSpan> now_;
    std::vector<model::TimeSpan> past_, future_;  // nearest last
    bool fresh_ = true;                           // now_ was set by a jump, not by small moves
};

}  // namespace shardscope::viewer::timeline
