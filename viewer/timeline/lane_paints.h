// The paints of a lane's events, and which paint has the most time in any stretch of them. A lane has its own
// by kind; the same events by name, module or unit have others. Pure data, any thread. Times in nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "viewer/timeline/paint.h"

namespace shardscope::viewer {

class Lane;
using PaintTimes = std::array<std::int64_t, kPaints>;  // busy time by paint

class LanePaints {
  public:
    void reserve(std::size_t events) { paint_.reserve(events); }
    void add(Paint paint) { paint_.push_back(paint); }
    void finish(const Lane& lane);  // to be called after the last add(): computes the sums

    Paint paint(std::size_t i) const { return paint_[i]; }
    std::size_t size() const { return paint_.size(); }
    // The paint with the most time in events [first, last); for events of zero length the first one's.
    Paint dominant(const Lane& lane, std::size_t first, std::size_t last) const;
    // Adds the busy time of events [first, last) by paint.
    void add_times(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const;
    const std::vector<Paint>& used() const { return used_; }
    std::size_t memory() const;

  private:
    static constexpr std::size_t kGroup = 16;  // number of events with a common sum
    void walk(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const;

    std::vector<Paint> paint_;
    std::vector<Paint> used_;         // in order; sums are kept only if there are several
    std::vector<std::int64_t> sums_;  // up to each group, by used paint
};

}  // namespace shardscope::viewer
