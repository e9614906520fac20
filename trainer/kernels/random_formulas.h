// The arithmetic of random.h on one element, for the CPU's loops and CUDA's kernels alike: the same
// operations, so the same bits. Sources that include this are compiled without contraction to FMA.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__) || defined(SHARDSCOPE_PLAYED_CUDA)
#include <cuda_runtime.h>
#define SHARDSCOPE_FORMULA __host__ __device__ inline
#else
#include "trainer/kernels/vectorize.h"
#define SHARDSCOPE_FORMULA SHARDSCOPE_INLINE
#endif

namespace shardscope::trainer::kernels {

constexpr int kPhiloxRounds = 10;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;  // the paper's constants: added to the key after each round
constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;

SHARDSCOPE_FORMULA void philox_round(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2,
                                     std::uint32_t& c3, std::uint32_t key0, std::uint32_t key1) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<std::uint32_t>(product0);
}

// In [0, 1): the upper 24 bits.
SHARDSCOPE_FORMULA float unit_interval(std::uint32_t word) {
    return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
}

// Natural logarithm of x in [2^-24, 1]. x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2
// atanh((m-1)/(m+1)), by its series to the ninth power (the next term is below 4e-9 of the sum).
SHARDSCOPE_FORMULA float log_approximate(float x) {
    constexpr std::uint32_t kRootHalf = 0x3f3504f3u;  // bits of sqrt(1/2)
    const std::uint32_t shifted = __builtin_bit_cast(std::uint32_t, x) - kRootHalf;
    const std::int32_t exponent = static_cast<std::int32_t>(shifted) >> 23;
    const float m = __builtin_bit_cast(float, (shifted & 0x007fffffu) + kRootHalf);
    const float s = (m - 1.0f) / (m + 1.0f);
    const float s2 = s * s;
    float p = 2.0f / 9.0f;
    p = p * s2 + 2.0f / 7.0f;
    p = p * s2 + 2.0f / 5.0f;
    p = p * s2 + 2.0f / 3.0f;
    const float log_m = s * (p * s2 + 2.0f);
    return static_cast<float>(exponent) * 0.693147182f + log_m;
}

// Cosine and sine of 2 pi turn, turn in [0, 1): the turn's distance from the nearest quarter is exact; its
// cosine and sine by their series (next terms below 1e-8); then the quarters swap and negate.
SHARDSCOPE_FORMULA void cosine_sine(float turn, float& cosine, float& sine) {
    constexpr float kTwoPi = 6.28318530717958648f;
    // Not lround: that would not vectorize, and at a tie either quarter will do.
    const auto quarter =
        static_cast<std::int32_t>(turn * 4.0f + 0.5f);  // NOLINT(bugprone-incorrect-roundings)
    const float angle = (turn - static_cast<float>(quarter) * 0.25f) * kTwoPi;
    const float a2 = angle * angle;
    float s = 1.0f / 362880.0f;
    s = s * a2 - 1.0f / 5040.0f;
    s = s * a2 + 1.0f / 120.0f;
    s = s * a2 - 1.0f / 6.0f;
    s = (s * a2 + 1.0f) * angle;
    float c = -1.0f / 3628800.0f;
    c = c * a2 + 1.0f / 40320.0f;
    c = c * a2 - 1.0f / 720.0f;
    c = c * a2 + 1.0f / 24.0f;
    c = c * a2 - 0.5f;
    c = c * a2 + 1.0f;
    const bool swapped = (quarter & 1) != 0;
    const float along = swapped ? s : c;
    const float across = swapped ? c : s;
    cosine = ((quarter + 1) & 2) != 0 ? -along : along;
    sine = (quarter & 2) != 0 ? -across : across;
}

// Two uniforms become two normals; the first is taken in (0, 1], where the logarithm is finite.
SHARDSCOPE_FORMULA void box_muller(std::uint32_t word0, std::uint32_t word1, float& first, float& second) {
    const float radius = std::sqrt(-2.0f * log_approximate(unit_interval(word0) + 0x1p-24f));
    float cosine = 0.0f, sine = 0.0f;
    cosine_sine(unit_interval(word1), cosine, sine);
    first = radius * cosine;
    second = radius * sine;
}

}  // namespace shardscope::trainer::kernels
