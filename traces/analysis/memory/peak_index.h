// The largest allocated total of one rank in any time interval: a segment tree over its allocations and
// frees. Building takes O(n), a query O(log n). Times in nanoseconds, sizes in bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

class PeakIndex {
  public:
    PeakIndex(const Trace& trace, RankPlace rank, MemorySpace space = MemorySpace::device);

    // The largest total at any instant of [start, end), including the one at `start`.
    std::int64_t most(std::int64_t start, std::int64_t end) const;

  private:
    std::vector<std::int64_t> times_;
    std::vector<std::int64_t> tree_;  // leaves from times_.size() on: the total after each row
};

}  // namespace shardscope::traces
