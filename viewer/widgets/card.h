// A card: a surface with a coloured edge on the left, as high as its contents. Drawing layer (Dear ImGui);
// frame thread only.
#pragma once

#include <functional>
#include <string_view>

#include "viewer/theme/theme.h"

namespace shardscope::viewer::widgets {

// Draws `contents(right)`, where `right` is the screen's x at which they must end, and the card behind them.
// Scripts find the card as `item`, with `text`.
void draw_card(std::string_view item, std::string_view text, theme::Color edge,
               const std::function<void(float right)>& contents);

}  // namespace shardscope::viewer::widgets
