// The colours of everything, stated once: dark ground, and for kinds of work hues that stay apart for
// colour-blind eyes (after Okabe and Ito) and differ in lightness too. No Dear ImGui; a Color has the layout
// of its ImU32.
#pragma once

#include <cstdint>

#include "traces/analysis/summary.h"
#include "traces/schema/enums.h"
#include "traces/store/trace.h"

namespace shardscope::viewer {

using Color = std::uint32_t;  // 0xAABBGGRR

// rgb(0x4FA3D9)
constexpr Color rgb(std::uint32_t hex, std::uint32_t alpha = 0xFF) {
    return alpha << 24 | (hex & 0xFF) << 16 | (hex & 0xFF00) | hex >> 16;
}

namespace theme {
inline constexpr Color kGround = rgb(0x15181D);   // behind everything
inline constexpr Color kSurface = rgb(0x1B1F26);  // panels, cards
inline constexpr Color kRaised = rgb(0x252B34);   // buttons, fields, headers
inline constexpr Color kHover = rgb(0x323A46);
inline constexpr Color kLine = rgb(0x343B47);  // separators, grid
inline constexpr Color kText = rgb(0xE3E7ED);
inline constexpr Color kTextDim = rgb(0x949EAC);
inline constexpr Color kAccent = rgb(0x5BA8E6);  // what is active, selected, focused
inline constexpr Color kGood = rgb(0x3DBE91);
inline constexpr Color kBad = rgb(0xE8743B);
inline constexpr Color kPeak = rgb(0xF2F4F7);  // the peak's mark
}  // namespace theme

Color kind_color(traces::DeviceKind kind);  // device events
Color range_color(traces::RangeKind kind);  // host ranges
Color runtime_color();                      // runtime API calls
Color category_color(traces::MemoryCategory category);
Color time_category_color(traces::TimeCategory category);
Color run_color(int index);  // a trace among several; any index

}  // namespace shardscope::viewer
