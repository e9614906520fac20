// What an optimizer's step allocates for itself, which a trace of PyTorch shows and a Plan, whose optimizers
// are fused, does not have: a few buffers of the largest parameter's size if it updates one after another, or
// of all together (foreach).
#pragma once

#include <cstdint>

#include "trainer/job/job.h"
#include "trainer/lift/lifted.h"

namespace shardscope::trainer::lift {

class OptimizerMemory {
  public:
    OptimizerMemory() = default;
    // `rise`: bytes by which the recorded step of `job` rises above its start inside the optimizer.
    // `together`: its operators show that it updates all parameters together; false: that depends on the
    // rise.
    OptimizerMemory(std::int64_t rise, const LiftedStep& step, const job::Job& job, bool together = false);

    // Bytes on one rank.
    std::int64_t of(const LiftedStep& step, const job::Job& job) const;

  private:
    double share_ = 0;  // of what it is proportional to
    bool all_ = false;  // proportional to all parameters of a rank, not to the largest
};

}  // namespace shardscope::trainer::lift
