// The icon of the window, the same picture as viewer/shardscope-view.svg: bars of three ranks on a timeline.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::viewer::backend {

// size * size pixels, RGBA, top row first.
std::vector<std::uint8_t> icon_pixels(int size);

}  // namespace shardscope::viewer::backend
