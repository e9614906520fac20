// Which ranges of time were shown, so that zooming and moving can be undone. It watches what is shown and
// takes small moves that follow each other (turns of the wheel, pixels of a drag) for one step: a step ends
// where the view's length has doubled or halved or half of it has gone out of sight. No clock is asked, so
// that the same gestures always give the same steps. Pure; nanoseconds.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "viewer/model/time_view.h"

namespace shardscope::viewer {

class ZoomHistory {
  public:
    static constexpr std::size_t kMost = 200;  // the oldest are forgotten

    // What is shown now; once a frame, and before back() or forward().
    void see(TimeSpan shown);
    // What to show instead; nullopt where there is nothing to go back or forward to.
    std::optional<TimeSpan> back();
    std::optional<TimeSpan> forward();
    bool can_go_back() const { return !past_.empty(); }
    bool can_go_forward() const { return !future_.empty(); }

  private:
    std::optional<TimeSpan> now_;
    std::vector<TimeSpan> past_, future_;  // nearest last
    bool fresh_ = true;                    // now_ was gone to, not grown by small moves
};

}  // namespace shardscope::viewer
