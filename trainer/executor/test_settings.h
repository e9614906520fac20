// Settings with which tests disturb the executor: none may change a bit of any result.
#pragma once

#include <cstdint>

namespace shardscope::trainer::executor {

#ifdef SHARDSCOPE_SANITIZED
inline constexpr bool kPoisonByDefault = true;
#else
inline constexpr bool kPoisonByDefault = false;
#endif

struct TestSettings {
    std::uint64_t delay_seed =
        0;  // not 0: short pseudo-random sleeps in streams, at collectives, waits and frees
    int transfer_delay_us = 0;  // every collective's data takes this much longer; no worker waits for it
    // Blocks hold NaNs (all bits set) from the system, and again once the last stream use after their free is
    // over.
    bool poison = kPoisonByDefault;
};

}  // namespace shardscope::trainer::executor
