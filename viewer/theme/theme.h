// All colours, defined once: a dark or a light background, and for kinds of work hues that are distinct for
// colour-blind eyes (after Okabe and Ito) and differ in lightness too. No Dear ImGui; a Color has the layout
// of its ImU32.
#pragma once

#include <cstdint>

#include "traces/analysis/fsdp/shard_states.h"
#include "traces/analysis/pipeline/timeline.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/waits/waits.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/trace.h"

namespace shardscope::viewer::theme {

using Color = std::uint32_t;  // 0xAABBGGRR

// rgb(0x4FA3D9)
constexpr Color rgb(std::uint32_t hex, std::uint32_t alpha = 0xFF) {
    return alpha << 24 | (hex & 0xFF) << 16 | (hex & 0xFF00) | hex >> 16;
}

enum class Appearance : std::uint8_t { dark, light };

// The colours of everything that is not data.
struct Palette {
    Color ground;   // behind everything
    Color surface;  // panels, cards
    Color raised;   // buttons, fields, headers
    Color hover;
    Color line;  // separators, grid
    Color text, text_dim;
    Color accent;  // what is active, selected, focused
    Color good, bad;
    Color peak;                                             // the peak's mark
    Color code_keyword, code_name, code_text, code_number;  // of SQL
};

// The appearance of this program: dark until it is set. Frame thread only. The caller that sets it must call
// apply_style() again.
Appearance appearance();
void set_appearance(Appearance appearance);
const Palette& palette();
inline Color ground() {
    return palette().ground;
}
inline Color surface() {
    return palette().surface;
}
inline Color raised() {
    return palette().raised;
}
inline Color hover() {
    return palette().hover;
}
inline Color line() {
    return palette().line;
}
inline Color text() {
    return palette().text;
}
inline Color text_dim() {
    return palette().text_dim;
}
inline Color accent() {
    return palette().accent;
}
inline Color good() {
    return palette().good;
}
inline Color bad() {
    return palette().bad;
}
inline Color peak() {
    return palette().peak;
}

Color kind_color(traces::store::DeviceKind kind);  // device events
Color range_color(traces::store::RangeKind kind);  // host ranges
Color runtime_color();                             // runtime API calls
Color category_color(traces::schema::MemoryCategory category);
Color time_category_color(traces::analysis::TimeCategory category);
Color shard_color(
    traces::analysis::ShardState state);  // in the shard map; sharded: hardly more than the background
Color compute_color(traces::analysis::ComputeKind kind);  // a pipeline's computations
Color idle_color(traces::analysis::IdleCause cause);      // a pipeline's bubble
Color waiting_color();  // time in which an event waits for another rank or a gather
Color wait_color(traces::analysis::WaitFor what);             // idle time, by what is waited for
Color exposure_color(traces::analysis::ExposureCause cause);  // exposed time, by its cause
Color exposed_color();                                        // communication outside compute kernels
Color overlapped_color();                                     // compute and communication at the same time
Color transfer_color();      // of a collective: the time when all its ranks take part
Color run_color(int index);  // a trace, or a rank's line, among several; different from all above; any index
// For things identified by name (color_modes.h): six hues, each dark and pale, so that neighbours differ in
// lightness too; any index. no_hue_color(): for things without a name.
Color hue_color(int index);
Color no_hue_color();

}  // namespace shardscope::viewer::theme
