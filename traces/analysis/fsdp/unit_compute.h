// Which unit's compute a rank ran at every moment, to attribute hidden communication. Internal to the
// library. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "traces/analysis/base/intervals.h"

namespace shardscope::traces {

// The compute of one rank; each instant belongs to the unit whose kernel started first; unit -1: none.
class UnitCompute {
  public:
    void add(Interval kernel, std::int32_t unit);  // in order of start

    // Adds to `by_unit` the compute within `time`; returns the sum.
    std::int64_t overlap(Interval time, std::unordered_map<std::int32_t, std::int64_t>& by_unit) const;

  private:
    struct Piece {
        Interval time;
        std::int32_t unit;
    };
    std::vector<Piece> pieces_;  // disjoint, sorted by time
    std::int64_t last_end_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace shardscope::traces
