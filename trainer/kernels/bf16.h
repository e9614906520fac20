// bfloat16: the upper half of a float's bits (8 exponent bits, 7 of fraction), and how kernels that are
// written once for float and Bf16 read and write them. Arithmetic is always fp32; only stored values are
// rounded, once, to nearest (ties to even). Thread safe (no state).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

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

// Convert 16 at a time, in the compiler's vector types, because for scalar loops that mix 16 and 32 bits it
// generates code of half the width. Loads and stores are unaligned.
typedef std::uint32_t WideLanes __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));
typedef std::uint16_t NarrowLanes __attribute__((vector_size(kLanes * sizeof(std::uint16_t))));

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

// Through these a kernel over T sees its operands as floats: the operands themselves if T is float (`buffer`
// is untouched and may be null), for Bf16 a copy in `buffer` (n floats, in the L1 cache), which `put` writes
// back.
SHARDSCOPE_INLINE const float* floats_of(const float* x, std::size_t, float*) {
    return x;
}
SHARDSCOPE_INLINE const float* floats_of(const Bf16* x, std::size_t n, float* buffer) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) widen_lanes(x + i, buffer + i);
    for (; i < n; ++i) buffer[i] = to_float(x[i]);
    return buffer;
}
SHARDSCOPE_INLINE float* floats_for(float* y, float*) {
    return y;
}
SHARDSCOPE_INLINE float* floats_for(Bf16*, float* buffer) {
    return buffer;
}
SHARDSCOPE_INLINE void put(float*, const float*, std::size_t) {}
SHARDSCOPE_INLINE void put(Bf16* y, const float* buffer, std::size_t n) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) round_lanes(buffer + i, y + i);
    for (; i < n; ++i) y[i] = to_bf16(buffer[i]);
}

// Stores sums in double, rounded to float and then to T.
SHARDSCOPE_INLINE void put_rounded(float* y, const double* sums, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<float>(sums[i]);
}
SHARDSCOPE_INLINE void put_rounded(Bf16* y, const double* sums, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] = to_bf16(static_cast<float>(sums[i]));
}

template <class T>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<float> = true;

// y[i] = f(x[i], ...) for n elements; each of y and the x may be float or Bf16, and y may be one of the x.
// Works block by block, so that the copies of Bf16 operands stay in the L1 cache; without Bf16 operands there
// are no copies and only one block.
template <class Y, class F, class... X>
SHARDSCOPE_INLINE void map(Y* y, std::size_t n, F f, const X*... x) {
    constexpr bool kCopies = !(kIsFloat<Y> && (kIsFloat<X> && ...));
    constexpr std::size_t kBuffer = kCopies ? 1024 : 1;
    const std::size_t block = kCopies ? kBuffer : n;
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t count = std::min(block, n - first);
        float buffers[sizeof...(X) + 1][kBuffer];
        float* out = floats_for(y + first, buffers[sizeof...(X)]);
        [&]<std::size_t... I>(std::index_sequence<I...>) SHARDSCOPE_INLINE_LAMBDA {
            const auto loop = [=](auto... in) SHARDSCOPE_INLINE_LAMBDA {
                for (std::size_t i = 0; i < count; ++i) out[i] = f(in[i]...);
            };
            loop(floats_of(x + first, count, buffers[I])...);
        }
        (std::index_sequence_for<X...>{});
        put(y + first, out, count);
    }
}

}  // namespace shardscope::trainer::kernels
