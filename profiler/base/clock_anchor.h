// One reading of ticks (clock.h) and of another clock, as close together as possible.
#pragma once

#include <cstdint>
#include <ctime>

#include "profiler/base/clock.h"

namespace shardscope::profiler {

struct ClockAnchor {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;  // of the other clock
};

// The tightest of several tries.
template <typename ReadClock>
ClockAnchor read_tightest(ClockSource source, int tries, ReadClock read_clock) {
    ClockAnchor best;
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int i = 0; i < tries; ++i) {
        const std::uint64_t before = read_ticks(source);
        const std::int64_t ns = read_clock();
        const std::uint64_t after = read_ticks(source);
        if (after - before >= tightest) continue;
        tightest = after - before;
        best = {before + (after - before) / 2, ns};
    }
    return best;
}

// An anchor with CLOCK_REALTIME, which is CUPTI's clock.
inline ClockAnchor read_realtime_anchor(ClockSource source) {
    return read_tightest(source, 8, [] {
        timespec now;
        ::clock_gettime(CLOCK_REALTIME, &now);
        return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    });
}

}  // namespace shardscope::profiler
