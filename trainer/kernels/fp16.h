// fp16, the half of IEEE 754: 5 exponent bits, 10 of fraction, subnormals, rounded to nearest (ties to even).
// What rounds to 65,536 or more in magnitude becomes infinity; a NaN stays a NaN. Plain integer arithmetic in
// every clone, so that all give the same bits (the clones' instruction sets do not all have F16C). Thread
// safe (no state).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

struct Fp16 {
    std::uint16_t bits;                            // no initializer: arrays of it are scratch memory
    friend bool operator==(Fp16, Fp16) = default;  // compares bits: a NaN equals itself, -0 is not 0
};

// The arithmetic of both directions, of one value (U is uint32_t, F float) or of 16 (their vectors). Results
// are written in place, because a vector that is returned has no ABI without AVX-512.
template <class U, class F>
struct Fp16Bits {
    static constexpr std::uint32_t kRebias = 112u << 23;  // between the exponents' biases, 127 and 15

    // `bits` is the type's 16 bits, zero-extended, and becomes the float's. A subnormal is m 2^-24: the
    // difference of 2^-14 (1 + m / 1024) and 2^-14, which is exact.
    static SHARDSCOPE_INLINE void widen(U& bits) {
        const U placed = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
        const U normal = placed + kRebias, of_small = normal + 0x00800000u;
        const U beyond = normal + kRebias;  // infinity and NaN have the largest exponent of either type
        F difference;
        std::memcpy(&difference, &of_small, sizeof difference);
        difference = difference - 0x1p-14f;
        U small;
        std::memcpy(&small, &difference, sizeof small);
        const U large = placed >= 0x0f800000u ? beyond : normal;
        bits = (placed < 0x00800000u ? small : large) | sign;
    }

    // `bits` is a float's and becomes the type's, in the lower half. Below 2^-14 the sum with 0.5, whose last
    // place is 2^-24, rounds to a subnormal's fraction.
    static SHARDSCOPE_INLINE void round(U& bits) {
        const U size = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;
        F sum;
        std::memcpy(&sum, &size, sizeof sum);
        sum = sum + 0.5f;
        U small;
        std::memcpy(&small, &sum, sizeof small);
        small = small - 0x3f000000u;
        const U normal = (size + 0x0fffu + ((size >> 13) & 1u) - kRebias) >> 13;
        const U infinity = (size & 0u) | 0x7c00u, quiet = ((size >> 13) & 0x03ffu) | 0x7e00u;
        const U finite = size < 0x38800000u ? small : normal;
        const U large = size >= 0x477ff000u ? infinity : finite;  // 65,520 is halfway to 65,536
        bits = (size > 0x7f800000u ? quiet : large) | sign;
    }
};

SHARDSCOPE_INLINE float to_float(Fp16 x) {
    std::uint32_t bits = x.bits;
    Fp16Bits<std::uint32_t, float>::widen(bits);
    return std::bit_cast<float>(bits);
}

SHARDSCOPE_INLINE Fp16 to_fp16(float x) {
    auto bits = std::bit_cast<std::uint32_t>(x);
    Fp16Bits<std::uint32_t, float>::round(bits);
    return {static_cast<std::uint16_t>(bits)};
}

SHARDSCOPE_INLINE void widen_lanes(const Fp16* x, float* y) {
    NarrowLanes narrow;
    std::memcpy(&narrow, x, sizeof narrow);
    WideLanes wide = __builtin_convertvector(narrow, WideLanes);
    Fp16Bits<WideLanes, FloatLanes>::widen(wide);
    std::memcpy(y, &wide, sizeof wide);
}

SHARDSCOPE_INLINE void round_lanes(const float* x, Fp16* y) {
    WideLanes bits;
    std::memcpy(&bits, x, sizeof bits);
    Fp16Bits<WideLanes, FloatLanes>::round(bits);
    const NarrowLanes narrow = __builtin_convertvector(bits, NarrowLanes);
    std::memcpy(static_cast<void*>(y), &narrow, sizeof narrow);
}

}  // namespace shardscope::trainer::kernels
