// Lists of numbers as people write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::traces::store {

// "0,2-5,8" of sorted numbers without repetition; two neighbours stay "0,1".
std::string number_list(std::span<const std::int64_t> numbers);

// The numbers of such a list, or of PyTorch's "[0, 1, 2]", sorted. Empty for any other text, as for one that
// was cut short ("[0, 1, ...]").
std::vector<int> numbers_of_list(std::string_view text);

}  // namespace shardscope::traces::store
