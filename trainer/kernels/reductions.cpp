// See reductions.h.
#include "trainer/kernels/reductions.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

constexpr std::size_t kPart = 4096;  // elements summed in one set of lanes: a copy of them fits in the cache

// The largest bit pattern without the sign: infinity and NaN are above all others.
SHARDSCOPE_VECTOR_CLONES
std::uint32_t largest_bits(const float* x, std::size_t n) {
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}
template <Narrow T>
SHARDSCOPE_VECTOR_CLONES std::uint32_t largest_bits(const T* x, std::size_t n) {
    std::uint16_t largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const auto bits = static_cast<std::uint16_t>(x[i].bits & 0x7fffu);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

}  // namespace

template <class T>
SHARDSCOPE_VECTOR_CLONES double sum_of_squares(const T* x, std::size_t n) {
    double sum = 0.0;
    for (std::size_t first = 0; first < n; first += kPart) {
        const std::size_t count = n - first < kPart ? n - first : kPart;
        float buffer[kPart];
        const float* in = floats_of(x + first, count, buffer);
        sum += lane_sum<double>(count, [=](std::size_t i) SHARDSCOPE_INLINE_LAMBDA {
            return static_cast<double>(in[i]) * static_cast<double>(in[i]);  // exact: 48 bits
        });
    }
    return sum;
}

float clip_factor(const double* sums, std::size_t count, double max_norm, double* norm) {
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) sum += sums[i];
    *norm = std::sqrt(sum);
    const double factor = max_norm / (*norm + 1e-6);
    return static_cast<float>(factor > 1.0 ? 1.0 : factor);
}

template <class T>
bool all_finite(const T* x, std::size_t n) {
    constexpr std::uint32_t kInfinity = std::is_same_v<T, float>  ? 0x7f800000u
                                        : std::is_same_v<T, Bf16> ? 0x7f80u
                                                                  : 0x7c00u;
    return largest_bits(x, n) < kInfinity;
}

template double sum_of_squares(const float*, std::size_t);
template double sum_of_squares(const Bf16*, std::size_t);
template double sum_of_squares(const Fp16*, std::size_t);
template bool all_finite(const float*, std::size_t);
template bool all_finite(const Bf16*, std::size_t);
template bool all_finite(const Fp16*, std::size_t);

}  // namespace shardscope::trainer::kernels
