// Division by a number that the host knows before the launch, as a multiplication and a shift (Granlund,
// Montgomery: "Division by Invariant Integers using Multiplication", 1994): kernels that turn an index into
// coordinates divide for every element.
#pragma once

#include <bit>
#include <cstdint>

#include "trainer/cuda/runtime.h"

namespace shardscope::trainer::cuda {

// With 2^(l-1) < divisor <= 2^l and factor = ceil(2^(31+l) / divisor), which has 32 bits, the product of a
// number below 2^31 and the factor is too large by less than 2^(31+l) / divisor.
class Divisor {
  public:
    explicit Divisor(int divisor = 1) : divisor_(divisor) {
        if (divisor <= 1) return;
        const auto by = static_cast<std::uint64_t>(divisor);
        const int log = std::bit_width(by - 1);
        factor_ = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + log)) + by - 1) / by);
        shift_ = log - 1;
    }
    // n / divisor, n not negative.
    __host__ __device__ int of(int n) const {
        if (divisor_ == 1) return n;
        const std::uint64_t product = std::uint64_t{static_cast<std::uint32_t>(n)} * factor_;
        return static_cast<int>(static_cast<std::uint32_t>(product >> 32) >> shift_);
    }
    __host__ __device__ int divisor() const { return divisor_; }

  private:
    int divisor_;
    std::uint32_t factor_ = 0;
    int shift_ = 0;
};

// n = quotient * divisor + rest.
struct Quotient {
    int quotient, rest;
};
__host__ __device__ inline Quotient divide(int n, const Divisor& by) {
    const int quotient = by.of(n);
    return {quotient, n - quotient * by.divisor()};
}

}  // namespace shardscope::trainer::cuda
