// The host's own work of FSDP, DDP and the optimizer, where a rank's thread does everything itself: hooks,
// views and calls around each collective, beside the copies. A recorded run shows their sum; what more or
// fewer of them cost follows from it under FSDP, and also from a typical cost under DDP.
#pragma once

#include <cstdint>

#include "trainer/lift/step_lifter.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::lift {

// The figures of a recorded run under `job`, in which what an optimizer of DTensors spends on their dispatch
// counts as the host's, not as work that grows with the bytes.
EngineFigures with_dispatch_on_host(EngineFigures engine, const job::Job& job, std::int64_t operator_ns);

class HostEngine {
  public:
    HostEngine() = default;
    // `recorded`: the replay of the recorded settings. `engine`: its times per step. `operator_ns`: the
    // overhead of a typical operator, which scales what a DTensor's dispatch is assumed to cost.
    HostEngine(const sharding::Program& recorded, const EngineFigures& engine, std::int64_t operator_ns);

    // Nanoseconds per step of a job.
    std::int64_t step_ns(const sharding::Program& program) const;

  private:
    double own_ns_ = 0;                    // as recorded, beside the optimizer's
    double shares_ = 0;                    // what that grows with, in the recorded step
    double share_ns_ = 0;                  // of a parameter that FSDP gathers or reduces
    double plain_optimizer_ns_ = 0;        // of an optimizer of tensors
    double distributed_optimizer_ns_ = 0;  // of the same of fully_shard's DTensors
};

}  // namespace shardscope::trainer::lift
