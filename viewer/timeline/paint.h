// The look of a bar, as a small number: one of the kinds below or, if the timeline is not coloured by kind,
// one of kHues hues (color_modes.h). Plain data.
#pragma once

#include <cstdint>

#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::viewer {

using Paint = std::uint8_t;

// By kind: device events, then host ranges, then the rest.
inline constexpr int kFirstRangePaint = traces::kDeviceKinds;
inline constexpr Paint kRuntimePaint = kFirstRangePaint + traces::kRangeKinds;
inline constexpr Paint kWaitPaint = kRuntimePaint + 1;      // synchronisation of the host
inline constexpr Paint kMarkPaint = kRuntimePaint + 2;      // an instant that was marked
inline constexpr Paint kArrivalPaint = kRuntimePaint + 3;   // of a collective: until all ranks have arrived
inline constexpr Paint kTransferPaint = kRuntimePaint + 4;  // of a collective: from then on
inline constexpr int kKindPaints = kTransferPaint + 1;

// By name, module or unit.
inline constexpr int kHues = 12;
inline constexpr Paint kFirstHue = kKindPaints;
inline constexpr Paint kNoHue = kFirstHue + kHues;  // it has no module, no unit
inline constexpr int kPaints = kNoHue + 1;

constexpr Paint paint_of(traces::DeviceKind kind) {
    return static_cast<Paint>(kind);
}
constexpr Paint paint_of(traces::RangeKind kind) {
    return static_cast<Paint>(kFirstRangePaint + static_cast<int>(kind));
}

}  // namespace shardscope::viewer
