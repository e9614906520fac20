// The cores that the ranks of one process share on the cpu device. Work that becomes ready while all are busy
// waits for one. That wait is not a property of the work but of what ran at the same time, which changes with
// the settings.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/intervals.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {
struct Communications;
}

namespace shardscope::trainer::lift {

class SharedCores {
  public:
    SharedCores() = default;
    // Known only for a trace of the trainer's cpu device whose ranks all ran in one process.
    SharedCores(const traces::store::Trace& trace, const traces::analysis::Communications& communications);

    int count() const { return count_; }  // 0: each rank has its own device, or unknown
    // The times at which all cores were busy.
    const traces::analysis::IntervalSet& full() const { return full_; }
    std::int64_t full_inside(traces::analysis::Interval interval) const;
    // The duration of a collective's transfer if its members had the cores to themselves; as recorded, it
    // gets only those that kernels do not use.
    std::int64_t transfer_ns(traces::analysis::Interval transfer, int members) const;

  private:
    struct Change {
        std::int64_t time = 0;
        int active = 0;  // kernels and copies running from then on
    };
    int count_ = 0;
    std::vector<Change> kernels_;  // by time
    traces::analysis::IntervalSet full_;
};

}  // namespace shardscope::trainer::lift
