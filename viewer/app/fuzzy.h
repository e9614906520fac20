// How well a name answers to a few typed letters: for the command palette. No Dear ImGui; pure.
#pragma once

#include <optional>
#include <string_view>

namespace shardscope::viewer {

// nullopt: not all letters of `typed` stand in `name` in this order (case and blanks in `typed` are ignored).
// Else the higher the better: letters in a row and at beginnings of words count more, long names less.
std::optional<int> fuzzy_score(std::string_view typed, std::string_view name);

}  // namespace shardscope::viewer
