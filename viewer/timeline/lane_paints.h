// What the events of a lane are painted with, and which paint takes most of any stretch of them. A lane has
// its own by kind; the same events by name, module or unit are another of these. Pure data, any thread.
// Times in nanoseconds.
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
    void finish(const Lane& lane);  // after the last add(): makes the sums

    Paint paint(std::size_t i) const { return paint_[i]; }
    std::size_t size() const { return paint_.size(); }
    // The paint that takes most of events [first, last); of events without length the first one's.
    Paint dominant(const Lane& lane, std::size_t first, std::size_t last) const;
    // Adds the busy time of events [first, last) to that of their paints.
    void add_times(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const;
    const std::vector<Paint>& used() const { return used_; }
    std::size_t memory() const;

  private:
    static constexpr std::size_t kGroup = 16;  // events whose sums are kept together
    void walk(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const;

    std::vector<Paint> paint_;
    std::vector<Paint> used_;         // in order; sums are kept only where there are several
    std::vector<std::int64_t> sums_;  // of the events before each group, by used paint
};

}  // namespace shardscope::viewer
