// How large the tensors are that a range of PyTorch took, by what its detail says of them
// (HostRanges::detail:
// {"Input Dims":[[2,3]],"Input type":["float"]}).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardscope::traces {

struct TensorSizes {
    int tensors = 0;
    std::int64_t largest = 0, sum = 0;  // bytes
};

// None where it has no tensor, or one whose size is unknown (a list of tensors tells no type).
std::optional<TensorSizes> input_tensors(std::string_view detail);

}  // namespace shardscope::traces
