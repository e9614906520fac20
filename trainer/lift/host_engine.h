// The host's own work of FSDP, where a rank's thread does everything itself: hooks, views and calls around
// each collective, beside the copies. A recorded run of FSDP shows its sum; for one of DDP a typical cost is
// assumed.
#pragma once

#include <cstdint>

#include "trainer/job/job.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::lift {

class HostEngine {
  public:
    HostEngine() = default;
    // `recorded`: the replay of the recorded settings. `host_ns`: its engine's own time per step.
    // `operator_ns`: the overhead of a typical operator, which scales what is assumed.
    HostEngine(const Program& recorded, std::int64_t host_ns, std::int64_t operator_ns);

    // Nanoseconds per step of a job.
    std::int64_t step_ns(const Program& program) const;

  private:
    // What the work grows with: parameters that are gathered or reduced, and calls of collectives.
    double shares_of(const Program& program) const;

    FsdpLayout layout_ = FsdpLayout::fsdp1;
    double share_ns_[2] = {0, 0};  // of a share, by whether the layout is fsdp2
    double other_ns_ = 0;          // of DDP's
    bool ddp_ = false;
};

}  // namespace shardscope::trainer::lift
