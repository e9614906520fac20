// The activations by their names in activations.def.
#pragma once

#include <cstdint>

namespace shardscope::trainer {

enum class ActivationKind : std::uint8_t {
    none,
#define ACTIVATION(name, ...) name,
#include "trainer/kernels/activations.def"
#undef ACTIVATION
};

}  // namespace shardscope::trainer
