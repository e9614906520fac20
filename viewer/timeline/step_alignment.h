// Another run's steps on this run's time axis: each begins where the step of the same number begins here.
// Where the other run's step is shorter, nothing is drawn until the next one; where it is longer, its end has
// no room before the next step and is cut off, which the part tells. Pure arithmetic, any thread;
// nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/store/columns/trace.h"
#include "viewer/model/session.h"

namespace shardscope::viewer::timeline {

// A stretch of this run's time in which all of the other run's times are moved by the same amount.
struct AlignedPart {
    model::TimeRange here;    // on this run's axis
    std::int64_t shift = 0;   // added to the other run's times
    std::int64_t step = -1;   // its number; -1: the runs have no step in common
    std::int64_t length = 0;  // of the step in the other run
    std::int64_t longer = 0;  // than here; negative: shorter
    std::int64_t cut = 0;     // what is not shown after the part, as this run's next step begins
};

struct AlignedParts {
    std::vector<AlignedPart> parts;  // in order, not overlapping
    bool each_step = true;           // false: too many; all are moved as the first step in sight
};

class StepAlignment {
  public:
    StepAlignment() = default;
    // The steps of one rank of each run, sorted by start. `apart`: how much later this run begins, used if
    // the runs have no step in common.
    StepAlignment(std::span<const traces::store::Step> here, std::span<const traces::store::Step> there,
                  std::int64_t apart);

    // The parts in a visible range; one part if more than `most` steps begin in it.
    AlignedParts parts(model::TimeRange visible, std::size_t most) const;
    bool has_steps() const { return !pairs_.empty(); }

  private:
    struct Pair {
        std::int64_t number = 0, here = 0, there = 0;  // starts
        std::int64_t here_length = 0, there_length = 0;
    };
    AlignedPart part_of(const Pair& pair) const;
    std::vector<Pair> pairs_;  // both starts grow
    std::int64_t apart_ = 0;
};

}  // namespace shardscope::viewer::timeline
