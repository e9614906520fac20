// Which part of the time the shard map shows, and how zooming, scrolling and stepping change it. Pure
// arithmetic, no drawing; any thread. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/analysis/time/summary.h"
#include "viewer/model/session.h"

namespace shardscope::viewer {

struct StepTime {  // from where the host or the device began with a step to the end of its device work
    std::int64_t number = 0;
    TimeRange time;
};
// The kept steps of one rank, in order of time.
std::vector<StepTime> step_times(const traces::Trace& trace, int rank_index, const traces::RankSummary& rank);

class ShardView {
  public:
    enum Mode {
        own = -1,
        step,
        timeline,
        whole
    };  // from 0 on the buttons; own: what the wheel has zoomed to
    int mode = step;

    void start() { *this = {}; }  // another trace
    void set_steps(std::vector<StepTime> steps) { steps_ = std::move(steps); }
    // Each frame: what can be shown at all, what the timeline shows, and where the cursor is.
    void update(TimeRange all, TimeRange timeline_shows, std::int64_t cursor);

    const TimeRange& range() const { return range_; }
    // The latest step that holds the time; nullptr outside of all.
    const StepTime* step_at(std::int64_t time) const;
    // The part of a step in the middle that lies in `all`; `all` where there is none.
    TimeRange middle_step(TimeRange all) const;

    // `share`: of the range, where the mouse is; `notches` of the wheel, > 0 shows less time.
    void zoom(TimeRange all, double share, double notches);
    void pan(TimeRange all, double share);  // of the range; > 0 to later times
    void follow(std::int64_t cursor);       // it was stepped: the range moves along where it must

  private:
    TimeRange around(std::int64_t time, TimeRange all) const;
    std::vector<StepTime> steps_;
    TimeRange range_;
    std::optional<TimeRange> chosen_;  // the step that is shown
};

}  // namespace shardscope::viewer
