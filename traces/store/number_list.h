// Lists of numbers as people write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace shardscope::traces::store {

// "0,2-5,8" of sorted numbers without repetition; two neighbours stay "0,1".
std::string number_list(std::span<const std::int64_t> numbers);

}  // namespace shardscope::traces::store
