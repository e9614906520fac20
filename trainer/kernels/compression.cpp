// See compression.h.
#include "trainer/kernels/compression.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

// --- orthonormal vectors -----------------------------------------------------------------------------------

// `between` elements are from one vector to the next, `step` from one of its numbers to the next; one of the
// two is 1.
struct Vectors {
    float* first;
    std::size_t count, length, between, step;
    float* at(std::size_t i) const { return first + i * between; }
};

SHARDSCOPE_INLINE double dot(const float* a, const float* b, std::size_t n, std::size_t step) {
    return lane_sum<double>(n, [=](std::size_t i) SHARDSCOPE_INLINE_LAMBDA {
        return static_cast<double>(a[i * step]) * static_cast<double>(b[i * step]);
    });
}

// Takes from a vector its parts along those before it; returns its norm then.
SHARDSCOPE_INLINE double take_parts(const Vectors& of, std::size_t v) {
    float* own = of.at(v);
    for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t u = 0; u < v; ++u) {
            const float* before = of.at(u);
            const auto along = static_cast<float>(dot(before, own, of.length, of.step));
            for (std::size_t i = 0; i < of.length; ++i) own[i * of.step] -= along * before[i * of.step];
        }
    }
    return std::sqrt(dot(own, own, of.length, of.step));
}

SHARDSCOPE_INLINE void orthogonalize(const Vectors& of, float epsilon, bool revives) {
    for (std::size_t v = 0; v < of.count; ++v) {
        float* own = of.at(v);
        double norm = take_parts(of, v);
        if (norm == 0 && revives) {
            own[v % of.length * of.step] = 1;
            norm = take_parts(of, v);
        }
        norm += static_cast<double>(epsilon);
        if (norm == 0) continue;
        const auto share = static_cast<float>(1 / norm);
        for (std::size_t i = 0; i < of.length; ++i) own[i * of.step] *= share;
    }
}

// --- the largest numbers -----------------------------------------------------------------------------------

// The bits of |x|, which are in the order of |x|.
std::uint32_t magnitude(float x) {
    return std::bit_cast<std::uint32_t>(x) & 0x7fffffffu;
}

// The k-th largest magnitude, k >= 1, found digit by digit from the highest: how many numbers have the digits
// found so far, and each next one?
struct Threshold {
    std::uint32_t magnitude = 0;
    std::size_t equal = 0;  // so many of the k have it
};
Threshold threshold_of(const float* x, std::size_t n, std::size_t k) {
    constexpr std::array<int, 3> kShifts = {20, 10, 0};  // digits of 11, 10 and 10 bits
    Threshold found{0, k};
    std::uint32_t known = 0;  // which bits are found
    for (const int shift : kShifts) {
        std::array<std::size_t, 2048> counts{};
        const std::uint32_t digits = shift == 20 ? 0x7ffu : 0x3ffu;
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t bits = magnitude(x[i]);
            if ((bits & known) == found.magnitude) ++counts[bits >> shift & digits];
        }
        std::uint32_t digit = digits;
        for (; counts[digit] < found.equal; --digit) found.equal -= counts[digit];
        found.magnitude |= digit << shift;
        known |= digits << shift;
    }
    return found;
}

}  // namespace

SHARDSCOPE_VECTOR_CLONES
void orthogonalize_columns(float* matrix, std::size_t rows, std::size_t columns, float epsilon) {
    orthogonalize({matrix, columns, rows, 1, columns}, epsilon, false);
}

SHARDSCOPE_VECTOR_CLONES
void orthogonalize_rows(float* matrix, std::size_t rows, std::size_t columns, float epsilon) {
    orthogonalize({matrix, rows, columns, columns, 1}, epsilon, true);
}

void select_largest(float* x, std::size_t n, std::size_t k, std::int32_t* places, float* values) {
    if (k == 0) return;
    const Threshold threshold = threshold_of(x, n, k);
    std::size_t found = 0, equal = 0;
    for (std::size_t i = 0; i < n && found < k; ++i) {
        const std::uint32_t bits = magnitude(x[i]);
        if (bits < threshold.magnitude) continue;
        if (bits == threshold.magnitude && equal++ >= threshold.equal) continue;
        places[found] = static_cast<std::int32_t>(i);
        values[found++] = std::exchange(x[i], 0.0f);
    }
}

void add_selected(const std::int32_t* places, const float* values, std::size_t k, int ranks, float factor,
                  float* y, std::size_t n) {
    std::fill_n(y, n, 0.0f);
    const std::size_t all = k * static_cast<std::size_t>(ranks);
    for (std::size_t i = 0; i < all; ++i) y[places[i]] += values[i];
    for (std::size_t i = 0; i < n; ++i) y[i] *= factor;
}

// --- signs -------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kWord = 32;  // bits

// scale if the bit is 1, else -scale
SHARDSCOPE_INLINE float of_bit(std::uint32_t word, std::size_t bit, float scale) {
    const std::uint32_t negative = (~word >> bit & 1u) << 31;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) ^ negative);
}

// Calls use(word, its first bit, first number, count) for the n numbers whose bits begin at `first`: whole
// words in one loop of a constant length, which is vectorized.
template <class Word, class Use>
SHARDSCOPE_INLINE void for_words(Word* words, std::size_t first, std::size_t n, const Use& use) {
    std::size_t done = 0;
    while (done < n) {
        const std::size_t bit = (first + done) % kWord;
        const std::size_t count = std::min(kWord - bit, n - done);
        Word& word = words[(first + done) / kWord];
        if (count == kWord) {
            use(word, 0, done, kWord);
        } else {
            use(word, bit, done, count);
        }
        done += count;
    }
}

}  // namespace

SHARDSCOPE_VECTOR_CLONES
float compress_signs(const float* x, float* error, const float* variance, std::size_t n, std::uint32_t* words,
                     std::size_t first) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
        error[i] += variance[i] == 0 ? 0.0f : x[i];  // where it is 0, the error is, too
        count += variance[i] == 0 ? 0u : 1u;
    }
    const double sum = lane_sum<double>(n, [=](std::size_t i) SHARDSCOPE_INLINE_LAMBDA {
        return static_cast<double>(error[i]) * static_cast<double>(error[i]);
    });
    const float scale = count == 0 ? 0.0f : static_cast<float>(std::sqrt(sum / static_cast<double>(count)));
    for_words(words, first, n,
              [=](std::uint32_t& word, std::size_t bit, std::size_t at, std::size_t length)
                  SHARDSCOPE_INLINE_LAMBDA {
                      std::uint32_t bits = 0, mask = 0;
                      for (std::size_t i = 0; i < length; ++i) {
                          mask |= 1u << (bit + i);
                          bits |= (error[at + i] >= 0 ? 1u : 0u) << (bit + i);
                      }
                      word = (word & ~mask) | bits;
                      for (std::size_t i = 0; i < length; ++i)
                          error[at + i] -= variance[at + i] == 0 ? 0.0f : of_bit(bits, bit + i, scale);
                  });
    return scale;
}

SHARDSCOPE_VECTOR_CLONES
void add_signs(const std::uint32_t* words, std::size_t first, float scale, float* y, std::size_t n) {
    for_words(words, first, n,
              [=](std::uint32_t word, std::size_t bit, std::size_t at, std::size_t length)
                  SHARDSCOPE_INLINE_LAMBDA {
                      for (std::size_t i = 0; i < length; ++i) y[at + i] += of_bit(word, bit + i, scale);
                  });
}

SHARDSCOPE_VECTOR_CLONES
void expand_signs(const std::uint32_t* words, std::size_t first, float scale, const float* variance, float* y,
                  std::size_t n) {
    for_words(words, first, n,
              [=](std::uint32_t word, std::size_t bit, std::size_t at, std::size_t length)
                  SHARDSCOPE_INLINE_LAMBDA {
                      for (std::size_t i = 0; i < length; ++i)
                          y[at + i] = variance[at + i] == 0 ? 0.0f : of_bit(word, bit + i, scale);
                  });
}

}  // namespace shardscope::trainer::kernels
