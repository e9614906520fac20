// The host's own work of FSDP and of the optimizer, where a rank's thread does everything itself: hooks,
// views and calls around each collective, beside the copies. A recorded run of FSDP shows their sum; for one
// of DDP a typical cost is assumed.
#pragma once

#include <cstdint>

#include "trainer/lift/step_lifter.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::lift {

class HostEngine {
  public:
    HostEngine() = default;
    // `recorded`: the replay of the recorded settings. `engine`: its times per step. `operator_ns`: the
    // overhead of a typical operator, which scales what is assumed.
    HostEngine(const sharding::Program& recorded, const EngineFigures& engine, std::int64_t operator_ns);

    // Nanoseconds per step of a job.
    std::int64_t step_ns(const sharding::Program& program) const;

  private:
    double share_ns_ = 0;                  // of a parameter that is gathered or reduced
    double ddp_ns_ = 0;                    // DDP's own
    double plain_optimizer_ns_ = 0;        // of an optimizer of tensors
    double distributed_optimizer_ns_ = 0;  // of the same of fully_shard's DTensors
};

}  // namespace shardscope::trainer::lift
