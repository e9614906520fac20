// The cores that the ranks of one process share on the cpu device. Work that becomes ready while all of them
// are busy waits for one: this is not a property of the work but of what ran at the same time, which other
// settings place elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/intervals.h"

namespace shardscope::traces {
struct Trace;
struct Communications;
}  // namespace shardscope::traces

namespace shardscope::trainer::lift {

class SharedCores {
  public:
    SharedCores() = default;
    // Known for a trace of the trainer's cpu device that has all ranks of its one process.
    SharedCores(const traces::Trace& trace, const traces::Communications& communications);

    int count() const { return count_; }  // 0: each rank has a device of its own, or nothing is known
    // When all cores were busy.
    const traces::IntervalSet& full() const { return full_; }
    std::int64_t full_inside(traces::Interval interval) const;
    // What a collective's transfer would take if its members had the cores to themselves: it gets the cores
    // that kernels do not use.
    std::int64_t transfer_ns(traces::Interval transfer, int members) const;

  private:
    struct Change {
        std::int64_t time = 0;
        int active = 0;  // kernels and copies, from then on
    };
    int count_ = 0;
    std::vector<Change> kernels_;  // by time
    traces::IntervalSet full_;
};

}  // namespace shardscope::trainer::lift
