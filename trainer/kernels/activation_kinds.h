// The activations by their names in activations.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardscope::trainer::kernels {

enum class ActivationKind : std::uint8_t {
    none,
#define ACTIVATION(name, ...) name,
#include "trainer/kernels/activations.def"
#undef ACTIVATION
};

// As model.activation names them; "auto" is none, the activation of the model's type.
inline constexpr std::string_view kActivationNames[] = {
    "auto",
#define ACTIVATION(name, ...) #name,
#include "trainer/kernels/activations.def"
#undef ACTIVATION
};

constexpr std::string_view name_of(ActivationKind kind) {
    return kActivationNames[static_cast<std::size_t>(kind)];
}

}  // namespace shardscope::trainer::kernels
