// Random numbers as pure functions of (seed, stream, index): no state, so any thread or rank
// can generate any part of a tensor alone, with the same result. Philox4x32-10 (Salmon, Moraes, Dror, Shaw:
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011); the key is the seed, the counter is (index / 4,
// stream). Equal in all bits on every machine: only additions, multiplications, divisions and square roots
// are used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardscope::trainer::kernels {

using PhiloxWords = std::array<std::uint32_t, 4>;

// Ten rounds on one counter.
PhiloxWords philox4x32(PhiloxWords counter, std::array<std::uint32_t, 2> key);

// 64 random bits.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// In [0, 1), a multiple of 2^-24.
float uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// Mean 0, deviation 1 (Box-Muller; no value is beyond 5.8).
float normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// out[i] = low + (high - low) * uniform(seed, stream, first_index + i)
void fill_uniform(float* out, std::size_t n, std::uint64_t seed, std::uint64_t stream,
                  std::uint64_t first_index, float low, float high);

// out[i] = mean + deviation * normal(seed, stream, first_index + i)
void fill_normal(float* out, std::size_t n, std::uint64_t seed, std::uint64_t stream,
                 std::uint64_t first_index, float mean, float deviation);

// The stream for a name, such as a parameter's path: a 64-bit hash that is the same in all versions and on
// all machines.
std::uint64_t stream_of(std::string_view path);

}  // namespace shardscope::trainer::kernels
