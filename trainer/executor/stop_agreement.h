// A stop that all processes of a job agree on: whoever is asked to stop tells rank 0, which freezes every
// process's gate, learns which step each has begun, and lets all go on to the latest of them.
#pragma once

#include <cstdint>

#include "trainer/executor/gates.h"
#include "trainer/executor/lifeline.h"
#include "trainer/world/world.h"

namespace shardscope::trainer {

class StopAgreement {
  public:
    // Answers for `gate`, which must outlive this. Tells the World's handlers.
    StopAgreement(World& world, StopGate& gate);

    // What a gate calls that is asked to stop.
    static void ask(World& world) { world.tell(kAsk, ""); }

  private:
    static constexpr const char *kAsk = "stop.ask", *kFreeze = "stop.freeze", *kBegun = "stop.begun",
                                *kLast = "stop.last";
    void asked();
    void freeze();
    void begun(std::int64_t step);

    World& world_;
    StopGate& gate_;
    // Of rank 0, on the World's thread.
    bool asked_ = false;
    int answers_ = 0;
    std::int64_t latest_ = -1;
    Lifeline<StopAgreement> lifeline_{this};
};

}  // namespace shardscope::trainer
