// The Feistel network; see sampler.h.
#include "trainer/data/sampler.h"

#include <bit>
#include <stdexcept>

#include "trainer/kernels/random.h"

namespace shardscope::trainer::data {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 62;

// A mix in which every bit of the result depends on every bit of x: the finaliser of SplitMix64 (Steele, Lea,
// Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

}  // namespace

Permutation::Permutation(std::int64_t n, std::int64_t seed, std::int64_t epoch)
    : n_(static_cast<std::uint64_t>(n)) {
    if (n < 1 || n > kLargest) throw std::invalid_argument("a permutation has 1 to 2^62 elements");
    half_bits_ = (static_cast<int>(std::bit_width(n_ - 1)) + 1) / 2;
    const std::uint64_t stream = kernels::stream_of("data.sampler");
    for (std::size_t round = 0; round < kRounds; ++round) {
        keys_[round] = kernels::random_bits(static_cast<std::uint64_t>(seed), stream,
                                            static_cast<std::uint64_t>(epoch) * kRounds + round);
    }
}

std::uint64_t Permutation::once(std::uint64_t i) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = i >> half_bits_;
    std::uint64_t right = i & mask;
    for (const std::uint64_t key : keys_) {
        const std::uint64_t next = left ^ (mixed(right + key) & mask);
        left = right;
        right = next;
    }
    return (left << half_bits_) | right;
}

std::int64_t Permutation::operator()(std::int64_t i) const {
    std::uint64_t walked = once(static_cast<std::uint64_t>(i));
    while (walked >= n_) walked = once(walked);
    return static_cast<std::int64_t>(walked);
}

}  // namespace shardscope::trainer::data
