// Unions of device time by kind, in one pass over the sorted device events: shared by the analyses. Reads and
// writes of files are not the device's work.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/selection.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

using KindUnions = std::array<IntervalSet, store::kDeviceKinds>;

inline const IntervalSet& of(const KindUnions& unions, store::DeviceKind kind) {
    return unions[static_cast<std::size_t>(kind)];
}

// By index into Trace::ranks.
std::vector<KindUnions> device_unions(const store::Trace& trace);

// The times when the rank's device did any work.
IntervalSet busy(const KindUnions& unions);

// The same for all ranks, by index into Trace::ranks, but including zero-length events outside all others, as
// empty intervals: the first and the last event bound the device's time whatever their length.
std::vector<IntervalSet> device_presence(const store::Trace& trace);
// From the first to the last device event within each of the windows, which are sorted and disjoint; an empty
// interval at the window's start if there is none.
std::vector<Interval> active_times(const IntervalSet& presence, std::span<const Interval> windows);

// The selected device events of these kinds with that name, in order of start.
std::vector<std::uint32_t> named_events(const store::Trace& trace, const Selection& selection,
                                        std::string_view name,
                                        std::initializer_list<store::DeviceKind> kinds);

}  // namespace shardscope::traces::analysis
