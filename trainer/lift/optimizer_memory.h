// What an optimizer's step allocates for itself, which a trace of PyTorch shows and a Plan, whose optimizers
// are fused, does not have: a few buffers of a parameter's size if it updates one after another, or of all
// together (foreach). Of the former, a variable keeps the last buffer until the next parameter's is made.
#pragma once

#include <cstdint>

#include "trainer/sharding/program.h"

namespace shardscope::trainer::lift {

class OptimizerMemory {
  public:
    OptimizerMemory() = default;
    // `rise`: bytes by which the recorded step of `program` rises above its start inside the optimizer.
    // `together`: its operators show that it updates all parameters together; false: that depends on the
    // rise.
    OptimizerMemory(std::int64_t rise, const sharding::Program& program, bool together = false);

    bool known() const { return share_ > 0; }
    // Bytes on the first rank.
    std::int64_t of(const sharding::Program& program) const;

  private:
    double share_ = 0;       // of what it is proportional to
    int buffers_ = 0;        // of one parameter; 0: of all parameters of the rank
    bool previous_ = false;  // and one of the parameter before
};

}  // namespace shardscope::trainer::lift
