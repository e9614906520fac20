// The look of Dear ImGui: our theme's colours, calm metrics, a font with wide coverage. Frame thread only.
#pragma once

namespace shardscope::viewer {

// `scale` of the display: 1 is 15 pixels a line of text.
void apply_style(float scale);

// DejaVu Sans from the usual places, else the built-in one, and the same larger as the atlas' second font.
// Before the first frame.
void load_fonts(float scale);

}  // namespace shardscope::viewer
