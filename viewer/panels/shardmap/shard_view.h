// Which part of the time the shard map shows, and how zooming, scrolling and stepping change it. Pure
// arithmetic, no drawing; any thread. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/analysis/time/summary.h"
#include "viewer/model/session.h"

namespace shardscope::viewer {

struct StepTime {  // from the first work of a step, on the host or the device, to the end of its device work
    std::int64_t number = 0;
    TimeRange time;
};
// The kept steps of one rank, in order of time.
std::vector<StepTime> step_times(const traces::Trace& trace, int rank_index, const traces::RankSummary& rank);

class ShardView {
  public:
    enum Mode { own = -1, step, timeline, whole };  // those from 0 on have buttons; own: zoomed by the wheel
    int mode = step;

    void start() { *this = {}; }  // resets it for another trace
    void set_steps(std::vector<StepTime> steps) { steps_ = std::move(steps); }
    // In each frame: the range that can be shown, what the timeline shows, and the cursor's time.
    void update(TimeRange all, TimeRange timeline_shows, std::int64_t cursor);

    const TimeRange& range() const { return range_; }
    // The latest step that contains the time; nullptr outside all steps.
    const StepTime* step_at(std::int64_t time) const;
    // The part of a middle step that is inside `all`; `all` if there are no steps.
    TimeRange middle_step(TimeRange all) const;

    // `share`: the mouse's position as a fraction of the range; `notches` of the wheel, > 0 shows less time.
    void zoom(TimeRange all, double share, double notches);
    void pan(TimeRange all, double share);  // fraction of the range; > 0 to later times
    void follow(std::int64_t cursor);       // after a step of the cursor: the range moves along if necessary

  private:
    TimeRange around(std::int64_t time, TimeRange all) const;
    std::vector<StepTime> steps_;
    TimeRange range_;
    std::optional<TimeRange> chosen_;  // the step that is shown
};

}  // namespace shardscope::viewer
