// One reading of ticks (clock.h) and of another clock, as close together as possible.
#pragma once

#include <cstdint>

#include "profiler/base/clock.h"

namespace shardscope::profiler {

template <typename Time>
struct AnchorTo {
    Ticks ticks{0};
    Time time{0};
};
using ClockAnchor = AnchorTo<MonotonicTime>;
using RealTimeAnchor = AnchorTo<RealTime>;

// The tightest of several tries.
template <typename Time>
AnchorTo<Time> read_tightest(ClockSource source, int tries) {
    AnchorTo<Time> best;
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int i = 0; i < tries; ++i) {
        const Ticks before = read_ticks(source);
        const Time time = Time::now();
        const Ticks after = read_ticks(source);
        if (after - before >= tightest) continue;
        tightest = after - before;
        best = {before + (after - before) / 2, time};
    }
    return best;
}

inline RealTimeAnchor read_realtime_anchor(ClockSource source) {
    return read_tightest<RealTime>(source, 8);
}

}  // namespace shardscope::profiler
