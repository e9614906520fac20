// Scores how well a name matches a few typed letters, for the command palette. No Dear ImGui; pure.
#pragma once

#include <optional>
#include <string_view>

namespace shardscope::viewer::app {

// nullopt: `name` does not contain all letters of `typed` in this order (case and blanks in `typed` are
// ignored). Otherwise higher is better: adjacent letters and beginnings of words count more, long names less.
std::optional<int> fuzzy_score(std::string_view typed, std::string_view name);

}  // namespace shardscope::viewer::app
