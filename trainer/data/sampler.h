// The order in which a run sees the samples of its text: PyTorch's DistributedSampler with set_epoch as pure
// functions, without its list of indices. The run's stream of samples has positions 0, 1, 2 …; the positions
// [e*n, (e+1)*n) are epoch e and show each of the n samples once, in an order that follows from (seed, e). A
// batch may hold the end of one epoch and the beginning of the next: nothing is dropped, padded or repeated,
// whatever the number of ranks. Any position is computed in constant time, so a resumed run continues
// exactly.
#pragma once

#include <array>
#include <cstdint>

namespace shardscope::trainer::data {

// A bijection of {0 … n-1} that is computed, not stored: a Feistel network (Luby and Rackoff: "How to
// construct pseudorandom permutations from pseudorandom functions", SIAM J. Comput. 17(2), 1988) on the
// smallest 2h bits that hold n, applied again while the result is not below n ("cycle walking": Black and
// Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). As 4^h < 4n, that takes fewer than four
// applications on average.
class Permutation {
  public:
    // 1 <= n <= 2^62; otherwise throws std::invalid_argument.
    Permutation(std::int64_t n, std::int64_t seed, std::int64_t epoch);

    // 0 <= i < n; the result is in the same range.
    std::int64_t operator()(std::int64_t i) const;

    std::int64_t size() const { return static_cast<std::int64_t>(n_); }

  private:
    static constexpr int kRounds = 8;  // four are enough for wide halves, but these may have one bit

    std::uint64_t once(std::uint64_t i) const;

    std::uint64_t n_;
    int half_bits_ = 0;
    std::array<std::uint64_t, kRounds> keys_;
};

class Sampler {
  public:
    // `samples` >= 1 is the n above.
    Sampler(std::int64_t samples, std::int64_t seed) : samples_(samples), seed_(seed) {}

    std::int64_t samples() const { return samples_; }
    std::int64_t epoch_of(std::int64_t position) const { return position / samples_; }
    Permutation order_of(std::int64_t epoch) const { return {samples_, seed_, epoch}; }

    // The sample that the run's stream shows at a position >= 0.
    std::int64_t sample_at(std::int64_t position) const {
        return order_of(epoch_of(position))(position % samples_);
    }

  private:
    std::int64_t samples_;
    std::int64_t seed_;
};

}  // namespace shardscope::trainer::data
