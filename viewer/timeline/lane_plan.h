// The lane in its track for each event, determined before the lanes are filled, so that their memory can be
// reserved exactly. Pure data, any thread. Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "viewer/timeline/lane.h"

namespace shardscope::viewer {

// The lanes of one track. Events must be placed in order of start.
class LanePlan {
  public:
    // The first lane from `lowest` on that is free at `start`.
    std::uint32_t place(std::size_t lowest, std::int64_t start, std::int64_t end) {
        if (free_from_.size() <= lowest) grow(lowest + 1);
        std::size_t lane = lowest;
        while (lane < free_from_.size() && free_from_[lane] > start) ++lane;
        if (lane == free_from_.size()) grow(lane + 1);
        free_from_[lane] = end > start ? end : start;
        ++events_[lane];
        return static_cast<std::uint32_t>(lane);
    }
    std::vector<Lane> empty_lanes() const {
        std::vector<Lane> lanes(events_.size());
        for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i].reserve(events_[i]);
        return lanes;
    }

  private:
    void grow(std::size_t lanes) {
        free_from_.resize(lanes, std::numeric_limits<std::int64_t>::min());
        events_.resize(lanes, 0);
    }
    std::vector<std::int64_t> free_from_;
    std::vector<std::size_t> events_;
};

}  // namespace shardscope::viewer
