// The known name nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardscope::trainer::job {

// The number of insertions, deletions, replacements and swaps of adjacent letters that turn `a` into `b`;
// case is ignored.
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, the first among equals; empty if none is near enough to be what was meant
// (more than a third of its letters, and more than two, would have to change).
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace shardscope::trainer::job
