// The parameters that a PyTorch operator reads, from the shapes of its inputs ("Input Dims", which the
// profiler writes with record_shapes=True).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace shardscope::trainer::lift {

struct OperatorParameter {
    std::string_view name;  // "weight"
    std::int64_t elements = 0, rows = 0;
};

// An entry of shardscope_torch.py --fake at the beginning of a module's call, whose "Input Dims" are the
// sizes of the module's first input, then those of its parameters.
inline constexpr std::string_view kListedParameters = "shardscope::parameters";

// Whether an operator of this name reads parameters.
bool reads_parameters(std::string_view operation);

// `detail`: HostRanges::detail, {"Input Dims":[[8,64],[64,64],[64]]}. Empty if it contains no shapes.
std::vector<OperatorParameter> parameters_of(std::string_view operation, std::string_view detail);

// The first dimension of the operator's other input, its batch; 0: unknown.
std::int64_t batch_of(std::string_view operation, std::string_view detail);

}  // namespace shardscope::trainer::lift
