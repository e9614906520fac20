// A stop that all processes of a job agree on: a process that is asked to stop notifies rank 0, which freezes
// every process's gate, learns which step each has begun, and lets all go on to the latest of these.
#pragma once

#include <cstdint>

#include "trainer/executor/gates.h"
#include "trainer/executor/lifeline.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::executor {

class StopAgreement {
  public:
    // Answers for `gate`, which must outlive this. Sets the World's handlers.
    StopAgreement(world::World& world, StopGate& gate);

    // Called by a gate that is asked to stop.
    static void ask(world::World& world) { world.tell(kAsk, ""); }

  private:
    static constexpr const char *kAsk = "stop.ask", *kFreeze = "stop.freeze", *kBegun = "stop.begun",
                                *kLast = "stop.last";
    void asked();
    void freeze();
    void begun(std::int64_t step);

    world::World& world_;
    StopGate& gate_;
    // Used on rank 0 only, on the World's thread.
    bool asked_ = false;
    int answers_ = 0;
    std::int64_t latest_ = -1;
    Lifeline<StopAgreement> lifeline_{this};
};

}  // namespace shardscope::trainer::executor
