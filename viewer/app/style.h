// The look of Dear ImGui: our theme's colours, calm metrics, a font with wide coverage. Frame thread only.
#pragma once

namespace shardscope::viewer::app {

// `scale`: the display's scale; at 1 a line of text is 15 pixels.
void apply_style(float scale);

// Loads DejaVu Sans from the usual places, else the built-in font, and a larger copy as the atlas' second
// font. Call before the first frame.
void load_fonts(float scale);

}  // namespace shardscope::viewer::app
