// How kernels that are written once for float, Bf16 and Fp16 read and write their elements. Arithmetic is
// always fp32; only stored values are rounded, once. Thread safe (no state).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <utility>

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/fp16.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

template <class T>
concept Narrow = std::same_as<T, Bf16> || std::same_as<T, Fp16>;

SHARDSCOPE_INLINE void store(float value, float& to) {
    to = value;
}
SHARDSCOPE_INLINE void store(float value, Bf16& to) {
    to = to_bf16(value);
}
SHARDSCOPE_INLINE void store(float value, Fp16& to) {
    to = to_fp16(value);
}

// Through these a kernel over T sees its operands as floats: the operands themselves if T is float (`buffer`
// is untouched and may be null), else a copy in `buffer` (n floats, in the L1 cache), which `put` writes
// back.
SHARDSCOPE_INLINE const float* floats_of(const float* x, std::size_t, float*) {
    return x;
}
template <Narrow T>
SHARDSCOPE_INLINE const float* floats_of(const T* x, std::size_t n, float* buffer) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) widen_lanes(x + i, buffer + i);
    for (; i < n; ++i) buffer[i] = to_float(x[i]);
    return buffer;
}
SHARDSCOPE_INLINE float* floats_for(float* y, float*) {
    return y;
}
template <Narrow T>
SHARDSCOPE_INLINE float* floats_for(T*, float* buffer) {
    return buffer;
}
SHARDSCOPE_INLINE void put(float*, const float*, std::size_t) {}
template <Narrow T>
SHARDSCOPE_INLINE void put(T* y, const float* buffer, std::size_t n) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) round_lanes(buffer + i, y + i);
    for (; i < n; ++i) store(buffer[i], y[i]);
}

// Stores sums in double, rounded to float and then to T.
template <class T>
SHARDSCOPE_INLINE void put_rounded(T* y, const double* sums, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) store(static_cast<float>(sums[i]), y[i]);
}

// y[i] = f(x[i], ...) for n elements; each of y and the x may be of any of the three types, and y may be one
// of the x. Works block by block, so that the copies of narrow operands stay in the L1 cache; without any
// there are no copies and only one block.
template <class Y, class F, class... X>
SHARDSCOPE_INLINE void map(Y* y, std::size_t n, F f, const X*... x) {
    constexpr bool kCopies = Narrow<Y> || (Narrow<X> || ...);
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
