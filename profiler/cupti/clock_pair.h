// CUPTI's clock, CLOCK_REALTIME, and ticks (clock.h), read as closely together as possible.
#pragma once

#include <cstdint>
#include <ctime>

#include "profiler/base/clock.h"

namespace shardscope::profiler::cupti {

struct ClockPair {
    std::uint64_t ticks = 0;
    std::int64_t realtime = 0;  // ns
};

// The tightest of several tries.
inline ClockPair read_clock_pair(ClockSource source) {
    ClockPair pair;
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int i = 0; i < 8; ++i) {
        timespec now;
        const std::uint64_t before = read_ticks(source);
        ::clock_gettime(CLOCK_REALTIME, &now);
        const std::uint64_t after = read_ticks(source);
        if (after - before >= tightest) continue;
        tightest = after - before;
        pair.ticks = before + (after - before) / 2;
        pair.realtime = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    }
    return pair;
}

}  // namespace shardscope::profiler::cupti
