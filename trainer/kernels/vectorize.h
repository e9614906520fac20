// Shared parts of the kernels' loops: one loop compiled for several instruction sets, sums in a fixed order,
// and exp as plain arithmetic. Internal to trainer/kernels; thread safe (no state).
//
// Every result here depends only on the values and the count: the order of each sum is written out (lanes,
// blocks) and nothing is contracted to FMA (see CMakeLists.txt), so scalar, AVX2 and AVX-512 code agree in
// all bits, whatever the alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The loader picks the clone for the processor (ifunc). Not with sanitizers: they start after ifunc
// resolvers.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(SHARDSCOPE_SANITIZED)
#define SHARDSCOPE_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHARDSCOPE_VECTOR_CLONES
#endif

// Clones must inline what they call: a called function would be compiled for the oldest processor.
#define SHARDSCOPE_INLINE inline __attribute__((always_inline))
#define SHARDSCOPE_INLINE_LAMBDA __attribute__((always_inline))

namespace shardscope::trainer::kernels {

inline constexpr std::size_t kLanes = 16;        // partial sums side by side: one AVX-512 register of floats
inline constexpr std::size_t kColumnTile = 128;  // columns summed together: partial sums stay in the L1 cache
inline constexpr std::size_t kRowBlock = 64;     // rows summed in float before the sum goes on in double

// Conversions work on 16 values at a time, in the compiler's vector types, because for scalar loops that mix
// 16 and 32 bits it generates code of half the width.
typedef float FloatLanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef std::uint32_t WideLanes __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));
typedef std::uint16_t NarrowLanes __attribute__((vector_size(kLanes * sizeof(std::uint16_t))));
typedef std::int32_t IntLanes __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

template <class T>
SHARDSCOPE_INLINE T add_lanes(T (&lanes)[kLanes]) {
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    return lanes[0];
}

// Sum of value(i) for i in [0, n). Lane l adds i = l, l + 16, l + 32 …; then the lanes are added pairwise.
// The same as `for (i) sum += value(i)`, up to rounding.
template <class T = float, class Value>
SHARDSCOPE_INLINE T lane_sum(std::size_t n, Value value) {
    T lanes[kLanes] = {};
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += value(i + l);
    }
    for (std::size_t l = 0; i + l < n; ++l) lanes[l] += value(i + l);
    return add_lanes(lanes);
}

// The largest of x[0 … n), n >= 1. NaNs may be ignored: they show up again when this is subtracted. The last
// lanes overlap the previous ones, because a maximum may count an element twice.
SHARDSCOPE_INLINE float lane_max(const float* x, std::size_t n) {
    if (n < kLanes) {
        float largest = x[0];
        for (std::size_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
        return largest;
    }
    // Uses a vector type, because the compiler does not turn a loop of 16 comparisons into one. The loads are
    // unaligned.
    FloatLanes largest;
    FloatLanes next;
    std::memcpy(&largest, x, sizeof largest);
    for (std::size_t i = kLanes; i + kLanes <= n; i += kLanes) {
        std::memcpy(&next, x + i, sizeof next);
        largest = next > largest ? next : largest;
    }
    std::memcpy(&next, x + n - kLanes, sizeof next);
    largest = next > largest ? next : largest;
    float lanes[kLanes];
    std::memcpy(lanes, &largest, sizeof lanes);
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l)
            lanes[l] = lanes[l + half] > lanes[l] ? lanes[l + half] : lanes[l];
    }
    return lanes[0];
}

// e^x within 2 units in the last place, for -87 <= x <= 88 or a NaN, which stays a NaN; undefined elsewhere.
// x = k ln 2 + r with |r| <= ln 2 / 2; e^r by its series to r^7 (the next term is below 1e-8 of the sum); 2^k
// is set as exponent bits. Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
SHARDSCOPE_INLINE float exp_in_range(float x) {
    constexpr float kRound = 12582912.0f;
    const float shifted = x * 1.44269504f + kRound;
    const float k = shifted - kRound;
    // ln 2 in two parts, the first with so few bits that k times it is exact.
    const float r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000u);
}

// The same for any x, clamped to that range.
SHARDSCOPE_INLINE float exp_approximate(float x) {
    x = x < -87.0f ? -87.0f : x;
    return exp_in_range(x > 88.0f ? 88.0f : x);
}

// Softmax of x[0 … n) into y (which may be x): returns the largest entry and the sum of e^(x - largest), so
// that the logarithm of a probability is x - largest - log(sum).
struct SoftmaxTerms {
    float largest;
    float sum;
};
SHARDSCOPE_INLINE SoftmaxTerms softmax_row(const float* x, float* y, std::size_t n) {
    const float largest = lane_max(x, n);
    float lanes[kLanes] = {};
    const std::size_t rest = n % kLanes;
    // The remainder after the last whole 16 is computed together with the elements before it, before those
    // are overwritten, because x may be y. Behind it `last` holds zeros, which add nothing to a lane.
    const bool overlaps = rest > 0 && n >= kLanes;
    float last[2 * kLanes] = {};
    if (overlaps) {
        for (std::size_t l = 0; l < kLanes; ++l) last[l] = exp_approximate(x[n - kLanes + l] - largest);
    }
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        float e[kLanes];  // all read before any is written
        for (std::size_t l = 0; l < kLanes; ++l) e[l] = exp_approximate(x[i + l] - largest);
        for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += e[l];
        for (std::size_t l = 0; l < kLanes; ++l) y[i + l] = e[l];
    }
    if (overlaps) {
        for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += last[kLanes - rest + l];
        std::memcpy(y + n - kLanes, last, kLanes * sizeof(float));
    } else {
        for (std::size_t l = 0; l < rest; ++l) {
            lanes[l] = exp_approximate(x[i + l] - largest);
            y[i + l] = lanes[l];
        }
    }
    const float sum = add_lanes(lanes);
    const float scale = 1.0f / sum;
    for (std::size_t j = 0; j < n; ++j) y[j] *= scale;
    return {largest, sum};
}

}  // namespace shardscope::trainer::kernels
