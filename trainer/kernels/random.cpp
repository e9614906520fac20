// Philox and the numbers made from its words; see random.h. Elements are generated in groups of 64 = 16
// counters, so that each round and each formula is one loop over 16 lanes.
#include "trainer/kernels/random.h"

#include <algorithm>
#include <cstring>

#include "trainer/kernels/random_formulas.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

constexpr std::size_t kCounters = 16;
constexpr std::size_t kGroup = 4 * kCounters;

// The words of 16 counters, word by word.
struct Words {
    std::uint32_t w[4][kCounters];
};

// Counters first_counter … first_counter + 15 of a stream.
SHARDSCOPE_INLINE void philox_group(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_counter,
                                    Words& words) {
    for (std::size_t l = 0; l < kCounters; ++l) {
        const std::uint64_t counter = first_counter + l;
        words.w[0][l] = static_cast<std::uint32_t>(counter);
        words.w[1][l] = static_cast<std::uint32_t>(counter >> 32);
        words.w[2][l] = static_cast<std::uint32_t>(stream);
        words.w[3][l] = static_cast<std::uint32_t>(stream >> 32);
    }
    std::uint32_t key0 = static_cast<std::uint32_t>(seed);
    std::uint32_t key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
#pragma GCC unroll 1  // if unrolled, it would not be vectorized
        for (std::size_t l = 0; l < kCounters; ++l) {
            philox_round(words.w[0][l], words.w[1][l], words.w[2][l], words.w[3][l], key0, key1);
        }
        key0 += kWeyl0;
        key1 += kWeyl1;
    }
}

SHARDSCOPE_VECTOR_CLONES
void uniform_group(std::uint64_t seed, std::uint64_t stream, std::uint64_t group, float low, float high,
                   float* out) {
    Words words;
    philox_group(seed, stream, group * kCounters, words);
    float made[4][kCounters];
    const float range = high - low;
    for (std::size_t k = 0; k < 4; ++k) {
        for (std::size_t l = 0; l < kCounters; ++l) made[k][l] = low + range * unit_interval(words.w[k][l]);
    }
    for (std::size_t l = 0; l < kCounters; ++l) {
        for (std::size_t k = 0; k < 4; ++k) out[4 * l + k] = made[k][l];
    }
}

SHARDSCOPE_VECTOR_CLONES
void normal_group(std::uint64_t seed, std::uint64_t stream, std::uint64_t group, float mean, float deviation,
                  float* out) {
    Words words;
    philox_group(seed, stream, group * kCounters, words);
    float made[4][kCounters];
    for (std::size_t k = 0; k < 4; k += 2) {
        for (std::size_t l = 0; l < kCounters; ++l) {
            float first;
            float second;
            box_muller(words.w[k][l], words.w[k + 1][l], first, second);
            made[k][l] = mean + deviation * first;
            made[k + 1][l] = mean + deviation * second;
        }
    }
    for (std::size_t l = 0; l < kCounters; ++l) {
        for (std::size_t k = 0; k < 4; ++k) out[4 * l + k] = made[k][l];
    }
}

// Calls make(group, 64 floats) for the groups that [first_index, first_index + n) touches; whole groups go
// directly to out, the two at the ends through a copy.
template <class Make>
void fill_by_groups(float* out, std::size_t n, std::uint64_t first_index, Make make) {
    std::size_t done = 0;
    while (done < n) {
        const std::uint64_t index = first_index + done;
        const std::uint64_t group = index / kGroup;
        const std::size_t offset = static_cast<std::size_t>(index % kGroup);
        const std::size_t count = std::min(kGroup - offset, n - done);
        if (count == kGroup) {
            make(group, out + done);
        } else {
            float whole[kGroup];
            make(group, whole);
            std::memcpy(out + done, whole + offset, count * sizeof(float));
        }
        done += count;
    }
}

PhiloxWords words_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
    return philox4x32({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                       static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

}  // namespace

PhiloxWords philox4x32(PhiloxWords counter, std::array<std::uint32_t, 2> key) {
    auto [c0, c1, c2, c3] = counter;
    for (int round = 0; round < kPhiloxRounds; ++round) {
        philox_round(c0, c1, c2, c3, key[0], key[1]);
        key[0] += kWeyl0;
        key[1] += kWeyl1;
    }
    return {c0, c1, c2, c3};
}

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    const PhiloxWords words = words_at(seed, stream, index);
    return static_cast<std::uint64_t>(words[1]) << 32 | words[0];
}

float uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    return unit_interval(words_at(seed, stream, index / 4)[index % 4]);
}

float normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    const PhiloxWords words = words_at(seed, stream, index / 4);
    const std::size_t pair = index % 4 & ~std::uint64_t{1};
    float made[2];
    box_muller(words[pair], words[pair + 1], made[0], made[1]);
    return made[index % 2];
}

void fill_uniform(float* out, std::size_t n, std::uint64_t seed, std::uint64_t stream,
                  std::uint64_t first_index, float low, float high) {
    fill_by_groups(out, n, first_index, [=](std::uint64_t group, float* to) {
        uniform_group(seed, stream, group, low, high, to);
    });
}

void fill_normal(float* out, std::size_t n, std::uint64_t seed, std::uint64_t stream,
                 std::uint64_t first_index, float mean, float deviation) {
    fill_by_groups(out, n, first_index, [=](std::uint64_t group, float* to) {
        normal_group(seed, stream, group, mean, deviation, to);
    });
}

// FNV-1a, then a mix (the finalizer of SplitMix64) so that the hashes of paths that differ only in the last
// letter differ everywhere.
std::uint64_t stream_of(std::string_view path) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char letter : path) {
        hash ^= static_cast<unsigned char>(letter);
        hash *= 0x100000001b3u;
    }
    hash ^= hash >> 30;
    hash *= 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 27;
    hash *= 0x94d049bb133111ebu;
    return hash ^ hash >> 31;
}

}  // namespace shardscope::trainer::kernels
