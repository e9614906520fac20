// Raw time stamps: the processor's time-stamp counter where it is invariant, else CLOCK_MONOTONIC in ns.
// Only the recorder turns them into nanoseconds.
#pragma once

#include <cstdint>

namespace shardscope::profiler {

std::uint64_t ticks();

}  // namespace shardscope::profiler
