// Unions of device time by kind, one pass over the sorted device events: shared by the analyses.
#pragma once

#include <array>
#include <vector>

#include "traces/analysis/intervals.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

using KindUnions = std::array<IntervalSet, kDeviceKinds>;

inline const IntervalSet& of(const KindUnions& unions, DeviceKind kind) {
    return unions[static_cast<std::size_t>(kind)];
}

// By index into Trace::ranks.
std::vector<KindUnions> device_unions(const Trace& trace);

// When any of the rank's device events ran.
IntervalSet busy(const KindUnions& unions);

}  // namespace shardscope::traces
