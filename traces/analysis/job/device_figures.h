// The figures of one device from its curves. Internal to the library.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "traces/analysis/job/owned_counters.h"
#include "traces/analysis/job/samples.h"
#include "traces/analysis/job/utilization.h"

namespace shardscope::traces::analysis {

using Known = std::optional<double>;

// Of a curve that there may not be.
inline Known mean_of(const SampledCurve* curve) {
    return curve ? Known(curve->mean()) : std::nullopt;
}
inline Known p95_of(const SampledCurve* curve) {
    return curve ? Known(curve->percentile(0.95)) : std::nullopt;
}
inline Known highest_of(const SampledCurve* curve) {
    return curve ? Known(curve->highest()) : std::nullopt;
}
inline Known idle_of(const SampledCurve* curve) {
    return curve ? Known(curve->zero_percent()) : std::nullopt;
}

inline void add(Known& sum, const Known& value) {
    if (value) sum = sum.value_or(0) + *value;
}

std::vector<SampledFigure> figures_of(const OwnedCurves& owned);

// The energy of a device, in a part of the time if one is given, and whether its own counter tells it.
std::pair<Known, bool> energy_of(const OwnedCurves& owned, const Interval* part = nullptr);

void add_gpu_figures(const OwnedCurves& owned, DeviceUse& use);

// `reasons`: the bits of throttling. Either may be missing.
std::vector<LanePoint> lane_of(const SampledCurve* utilization, const SampledCurve* reasons, Interval time,
                               std::size_t points);

}  // namespace shardscope::traces::analysis
