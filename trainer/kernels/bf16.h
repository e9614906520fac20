// bfloat16: the upper half of a float's bits (8 exponent bits, 7 of fraction), rounded to nearest (ties to
// even). Thread safe (no state).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

struct Bf16 {
    std::uint16_t bits;                            // no initializer: arrays of it are scratch memory
    friend bool operator==(Bf16, Bf16) = default;  // compares bits: a NaN equals itself, -0 is not 0
};

SHARDSCOPE_INLINE float to_float(Bf16 x) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

// Values beyond the largest Bf16 become infinity; a NaN stays a NaN and keeps its sign, even if its fraction
// was entirely in the half that is dropped.
SHARDSCOPE_INLINE Bf16 to_bf16(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const std::uint32_t quiet = bits | 0x00400000u;
    const std::uint32_t chosen = (bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded;
    return {static_cast<std::uint16_t>(chosen >> 16)};
}

SHARDSCOPE_INLINE void widen_lanes(const Bf16* x, float* y) {
    NarrowLanes narrow;
    std::memcpy(&narrow, x, sizeof narrow);
    const WideLanes wide = __builtin_convertvector(narrow, WideLanes) << 16;
    std::memcpy(y, &wide, sizeof wide);
}

SHARDSCOPE_INLINE void round_lanes(const float* x, Bf16* y) {
    WideLanes bits;
    std::memcpy(&bits, x, sizeof bits);
    const WideLanes rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const WideLanes quiet = bits | 0x00400000u;
    const WideLanes chosen = (bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded;
    const NarrowLanes narrow = __builtin_convertvector(chosen >> 16, NarrowLanes);
    std::memcpy(static_cast<void*>(y), &narrow, sizeof narrow);
}

}  // namespace shardscope::trainer::kernels
