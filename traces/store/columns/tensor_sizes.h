// The sizes of the input tensors of a PyTorch range, from its detail (HostRanges::detail:
// {"Input Dims":[[2,3]],"Input type":["float"]}).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace shardscope::traces::store {

struct TensorSizes {
    int tensors = 0;
    std::int64_t largest = 0, sum = 0;  // bytes
};

// None if there is no tensor, or one whose size is unknown (a list of tensors has no recorded type).
std::optional<TensorSizes> input_tensors(std::string_view detail);

// The dimensions of each input; empty for one that is not a tensor, or that has none. Empty without "Input
// Dims".
std::vector<std::vector<std::int64_t>> input_dimensions(std::string_view detail);

}  // namespace shardscope::traces::store
