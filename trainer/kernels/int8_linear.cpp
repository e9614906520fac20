#include "trainer/kernels/int8_linear.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "trainer/kernels/blas.h"
#include "trainer/kernels/linear.h"
#include "trainer/kernels/reductions.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {

namespace {

constexpr float kLargest = 127.0f;
constexpr std::size_t kTile = 64;  // rows of weights that are floats at a time: they fit into a cache

// A lane of 32 bits holds four weights, which shifts extract: compilers turn a conversion of bytes into code
// for each of them. `place`: of the weight in its lane.
constexpr std::size_t kPacked = 4, kBlock = kPacked * kLanes;
static_assert(std::endian::native == std::endian::little);

SHARDSCOPE_INLINE void extract(const IntLanes& packed, std::size_t place, FloatLanes& weights) {
    const int shift = static_cast<int>(8 * (kPacked - 1 - place));
    weights = __builtin_convertvector((packed << shift) >> 24, FloatLanes);
}

// The inputs of whole blocks in the order in which their weights are extracted; the rest stays.
void reorder(const float* x, float* to, std::size_t n) {
    std::size_t i = 0;
    for (; i + kBlock <= n; i += kBlock) {
        for (std::size_t at = 0; at < kBlock; ++at) to[i + at] = x[i + at % kLanes * kPacked + at / kLanes];
    }
    std::copy(x + i, x + n, to + i);
}

// The sum of x[i] q[i] from `first` on, added to the lanes' sums.
SHARDSCOPE_INLINE float sum_of(const FloatLanes& sums, const float* x, const std::int8_t* q,
                               std::size_t first, std::size_t n) {
    float lanes[kLanes];
    std::memcpy(lanes, &sums, sizeof lanes);
    for (std::size_t i = first; i < n; ++i) lanes[i % kLanes] += x[i] * static_cast<float>(q[i]);
    return add_lanes(lanes);
}

// As linear_forward_of_few: several rows of weights side by side, each read and extracted once for all rows
// of x, which are reordered.
template <std::size_t kRows>
SHARDSCOPE_INLINE void multiply(const float* x, const std::int8_t* q, const float* scales, const float* bias,
                                float* y, std::size_t in, std::size_t out) {
    constexpr std::size_t kTogether = 4;
    for (std::size_t j = 0; j < out; j += kTogether) {
        const std::int8_t* weights[kTogether];
        for (std::size_t t = 0; t < kTogether; ++t) weights[t] = q + std::min(j + t, out - 1) * in;
        FloatLanes sums[kTogether][kRows] = {};
        std::size_t k = 0;
        for (; k + kBlock <= in; k += kBlock) {
            IntLanes packed[kTogether];
            for (std::size_t t = 0; t < kTogether; ++t)
                std::memcpy(&packed[t], weights[t] + k, sizeof packed[t]);
            for (std::size_t place = 0; place < kPacked; ++place) {
                FloatLanes own[kRows];
                for (std::size_t r = 0; r < kRows; ++r)
                    std::memcpy(&own[r], x + r * in + k + place * kLanes, sizeof own[r]);
                for (std::size_t t = 0; t < kTogether; ++t) {
                    FloatLanes w;
                    extract(packed[t], place, w);
                    for (std::size_t r = 0; r < kRows; ++r) sums[t][r] += own[r] * w;
                }
            }
        }
        for (std::size_t r = 0; r < kRows; ++r) {
            for (std::size_t t = 0; t < kTogether && j + t < out; ++t) {
                y[r * out + j + t] = sum_of(sums[t][r], x + r * in, weights[t], k, in) * scales[j + t] +
                                     (bias ? bias[j + t] : 0.0f);
            }
        }
    }
}

SHARDSCOPE_VECTOR_CLONES void read_once(const float* x, const std::int8_t* q, const float* scales,
                                        const float* bias, float* y, int rows, std::size_t in,
                                        std::size_t out) {
    static_assert(kFewRows == 4);
    if (rows == 1) return multiply<1>(x, q, scales, bias, y, in, out);
    if (rows == 2) return multiply<2>(x, q, scales, bias, y, in, out);
    if (rows == 3) return multiply<3>(x, q, scales, bias, y, in, out);
    if (rows == 4) return multiply<4>(x, q, scales, bias, y, in, out);
}

SHARDSCOPE_VECTOR_CLONES void widen(const std::int8_t* q, float* to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(q[i]);
}

// Of some columns of y, which has `out`.
SHARDSCOPE_VECTOR_CLONES void scale_columns(const float* scales, const float* bias, float* y,
                                            std::size_t rows, std::size_t columns, std::size_t out) {
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t j = 0; j < columns; ++j)
            y[r * out + j] = y[r * out + j] * scales[j] + (bias ? bias[j] : 0.0f);
    }
}

}  // namespace

bool quantize_rows(const float* w, std::int8_t* q, float* scales, std::size_t rows, std::size_t in) {
    if (!all_finite(w, rows * in)) return false;
    for (std::size_t j = 0; j < rows; ++j) {
        const float* row = w + j * in;
        float largest = 0;
        for (std::size_t i = 0; i < in; ++i) largest = std::max(largest, std::abs(row[i]));
        scales[j] = largest / kLargest;
        for (std::size_t i = 0; i < in; ++i) {
            // The limits matter only where the scale is so small that it has lost digits.
            const float value = scales[j] > 0 ? std::nearbyint(row[i] / scales[j]) : 0.0f;
            q[j * in + i] = static_cast<std::int8_t>(std::clamp(value, -kLargest, kLargest));
        }
    }
    return true;
}

void int8_linear_forward(const float* x, const std::int8_t* q, const float* scales, const float* bias,
                         float* y, int rows, int in, int out) {
    const auto height = static_cast<std::size_t>(rows), depth = static_cast<std::size_t>(in);
    const auto width = static_cast<std::size_t>(out);
    if (rows <= kFewRows) {
        auto* ordered = workspace_of<float>(Purpose::operand_a, height * depth);
        for (std::size_t r = 0; r < height; ++r) reorder(x + r * depth, ordered + r * depth, depth);
        return read_once(ordered, q, scales, bias, y, rows, depth, width);
    }
    auto* tile = workspace_of<float>(Purpose::operand_b, kTile * depth);
    for (std::size_t first = 0; first < width; first += kTile) {
        const std::size_t count = std::min(kTile, width - first);
        widen(q + first * depth, tile, count * depth);
        Blas::get().sgemm(false, true, rows, static_cast<int>(count), in, 1.0f, x, in, tile, in, 0.0f,
                          y + first, out);
        scale_columns(scales + first, bias ? bias + first : nullptr, y + first, height, count, width);
    }
}

}  // namespace shardscope::trainer::kernels
