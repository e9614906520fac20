// A bar of names by their share of a time, with labels where they fit. Drawing layer (Dear ImGui); frame
// thread.
#pragma once

#include <optional>
#include <span>

#include "viewer/panels/work/operator_rows.h"

namespace shardscope::viewer {

// As wide as the room left. Returns the table's row of the part that was clicked.
std::optional<std::size_t> draw_share_bar(const char* id, std::span<const NameShare> parts);

}  // namespace shardscope::viewer
