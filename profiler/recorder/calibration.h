// Turns raw ticks (clock.h) into nanoseconds of CLOCK_MONOTONIC by measured pairs of both ("anchors").
//
// Between two anchors the mapping is a straight line, so it is continuous and monotone, and follows a clock
// that the kernel slews. A drain takes an anchor after it has seen which records are there, so that every
// record lies before the newest anchor and only future ticks are extrapolated. One thread feeds it, and may
// read without a lock; other readers share a lock with update().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/base/clock_anchor.h"

namespace shardscope::profiler {

// An anchor with CLOCK_MONOTONIC.
ClockAnchor read_anchor(ClockSource source);

class Calibration {
  public:
    explicit Calibration(ClockSource source);  // takes about a millisecond: two anchors

    void update() { add(read_anchor(source_)); }
    // Adds a measured anchor; ignored unless it is later than the last one on both clocks.
    void add(ClockAnchor anchor);

    MonotonicTime to_monotonic(Ticks ticks) const;
    ClockSource source() const { return source_; }
    std::size_t anchors() const { return anchors_.size(); }

    // Beyond this number, the oldest anchors are thinned.
    static constexpr std::size_t kMaxAnchors = 8192;

  private:
    void thin();

    ClockSource source_;
    std::vector<ClockAnchor> anchors_;  // strictly increasing in both members
};

}  // namespace shardscope::profiler
