// The random numbers of trainer/kernels/random.h on the device, bit for bit: Philox4x32-10 (Salmon, Moraes,
// Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011), the key is the seed, the counter is
// (index / 4, stream). Sources that include this are compiled without contraction to FMA. Device code.
#pragma once

#include <cstdint>

#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

// The four words of one counter: those of elements 4 * counter … 4 * counter + 3.
struct PhiloxWords {
    std::uint32_t at[4];
};

__device__ inline PhiloxWords philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
    std::uint32_t c0 = static_cast<std::uint32_t>(counter), c1 = static_cast<std::uint32_t>(counter >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(stream), c3 = static_cast<std::uint32_t>(stream >> 32);
    std::uint32_t key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * c0;
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * c2;
        c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
        c1 = static_cast<std::uint32_t>(product1);
        c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
        c3 = static_cast<std::uint32_t>(product0);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

// In [0, 1): the upper 24 bits.
__device__ inline float unit_interval(std::uint32_t word) {
    return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
}

// Natural logarithm of x in [2^-24, 1]: x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2
// atanh((m-1)/(m+1)) by its series to the ninth power.
__device__ inline float log_approximate(float x) {
    constexpr std::uint32_t kRootHalf = 0x3f3504f3u;  // bits of sqrt(1/2)
    const std::uint32_t shifted = bits_of(x) - kRootHalf;
    const std::int32_t exponent = static_cast<std::int32_t>(shifted) >> 23;
    const float m = from_bits((shifted & 0x007fffffu) + kRootHalf);
    const float s = (m - 1.0f) / (m + 1.0f);
    const float s2 = s * s;
    float p = 2.0f / 9.0f;
    p = p * s2 + 2.0f / 7.0f;
    p = p * s2 + 2.0f / 5.0f;
    p = p * s2 + 2.0f / 3.0f;
    const float log_m = s * (p * s2 + 2.0f);
    return static_cast<float>(exponent) * 0.693147182f + log_m;
}

// Cosine and sine of 2 pi turn, turn in [0, 1), by their series around the nearest quarter.
__device__ inline void cosine_sine(float turn, float& cosine, float& sine) {
    constexpr float kTwoPi = 6.28318530717958648f;
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
__device__ inline void box_muller(std::uint32_t word0, std::uint32_t word1, float& first, float& second) {
    const float radius = sqrtf(-2.0f * log_approximate(unit_interval(word0) + 0x1p-24f));
    float cosine, sine;
    cosine_sine(unit_interval(word1), cosine, sine);
    first = radius * cosine;
    second = radius * sine;
}

}  // namespace shardscope::trainer::cuda
