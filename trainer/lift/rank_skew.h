// How long a rank that computes on a shared processor waits for the others: each is delayed at times of its
// own, and where a collective stops all of them, the slowest decides. More such places cost more, which no
// single wait of the recording shows; the recorded work of all ranks, cut at the places that a replay has,
// does.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::trainer::lift {

class RankSkew {
  public:
    RankSkew() = default;
    // `converted`: a trace that as_device_trace() has made. `steps`: numbers of the steps to look at.
    RankSkew(const traces::store::Trace& converted, traces::store::RankIndex rank,
             const std::vector<std::int64_t>& steps);

    // False if the trace has one rank only.
    bool known() const { return !steps_.empty(); }
    // The rank's mean waiting per step, as a share of its work, if all ranks meet at these shares (0 to 1,
    // rising) of their work.
    double waiting(const std::vector<double>& shares) const;

  private:
    // The nanoseconds of work that a rank has done at the end of each operator of a step, as long as all
    // carry out the same ones (optimizers of unlike shards do not), and at the end of the step.
    using Work = std::vector<double>;
    struct StepWork {
        std::vector<Work> ranks;  // by rank index
        Work mean;
    };
    traces::store::RankIndex rank_{0};
    std::vector<StepWork> steps_;
};

}  // namespace shardscope::trainer::lift
