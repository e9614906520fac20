// Bytes of the values that a Plan keeps whatever the precision of parameters: shards, gradients and optimizer
// state, losses.
#pragma once

#include <cstdint>

namespace shardscope::trainer {

inline constexpr std::int64_t kFloat = sizeof(float);
inline constexpr std::int64_t kDouble = sizeof(double);

}  // namespace shardscope::trainer
