#include "trainer/checkpoint/element_type.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "trainer/kernels/bf16.h"

namespace shardscope::trainer::checkpoint {

namespace {

// IEEE 754's binary16: 5 exponent bits, 10 of fraction.
float from_half(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
    if (exponent == 31) {
        const std::uint32_t wide = 0x7F800000U | static_cast<std::uint32_t>(fraction) << 13;
        return std::copysign(std::bit_cast<float>(wide), sign);
    }
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
    return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

template <class Stored>
Stored element(const std::byte* at) {
    Stored value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

float to_float(const std::byte* at, ElementType type) {
    switch (type) {
        case ElementType::bf16:
            return kernels::to_float(kernels::Bf16{element<std::uint16_t>(at)});
        case ElementType::fp16:
            return from_half(element<std::uint16_t>(at));
        case ElementType::fp64:
            return static_cast<float>(element<double>(at));
        case ElementType::fp32:
            break;
    }
    return element<float>(at);
}

}  // namespace

void to_fp32(std::span<const std::byte> from, ElementType type, std::int64_t stride,
             std::span<std::byte> to) {
    const auto step = static_cast<std::size_t>(stride * size_of(type));
    for (std::size_t i = 0; 4 * i < to.size(); ++i) {
        const float value = to_float(from.data() + i * step, type);
        std::memcpy(to.data() + 4 * i, &value, sizeof value);
    }
}

}  // namespace shardscope::trainer::checkpoint
