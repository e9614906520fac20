// Element-wise sums, products, conversions and copies; see elementwise.h.
#include "trainer/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

template <class T>
SHARDSCOPE_VECTOR_CLONES void add(const T* a, const T* b, T* y, std::size_t n) {
    map(
        y, n, [](float left, float right) SHARDSCOPE_INLINE_LAMBDA { return left + right; }, a, b);
}

template <class X, class T>
SHARDSCOPE_VECTOR_CLONES void accumulate(const X* x, T* y, std::size_t n) {
    const T* before = y;
    map(
        y, n, [](float sum, float more) SHARDSCOPE_INLINE_LAMBDA { return sum + more; }, before, x);
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void subtract(const T* x, T* y, std::size_t n) {
    const T* before = y;
    map(
        y, n, [](float value, float less) SHARDSCOPE_INLINE_LAMBDA { return value - less; }, before, x);
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void scale(T* x, float factor, std::size_t n) {
    const T* before = x;
    map(
        x, n, [=](float value) SHARDSCOPE_INLINE_LAMBDA { return value * factor; }, before);
}

template <Narrow T>
SHARDSCOPE_VECTOR_CLONES void cast(const float* x, T* y, std::size_t n) {
    put(y, x, n);
}

template <Narrow T>
SHARDSCOPE_VECTOR_CLONES void cast(const T* x, float* y, std::size_t n) {
    floats_of(x, n, y);
}

template <class T>
void copy(const T* in, T* out, std::size_t n) {
    if (in != out && n > 0) std::memcpy(out, in, n * sizeof(T));
}

namespace {

constexpr std::size_t kPart = 512;  // partial sums stay in the L1 cache while all ranks are added

}  // namespace

template <class T>
SHARDSCOPE_VECTOR_CLONES void sum_ranks(const T* const* inputs, int ranks, T* out, std::size_t n,
                                        double factor) {
    const float share = static_cast<float>(factor);
    for (std::size_t first = 0; first < n; first += kPart) {
        const std::size_t count = std::min(kPart, n - first);
        float sum[kPart];
        float buffer[kPart];
        std::memcpy(sum, floats_of(inputs[0] + first, count, buffer), count * sizeof(float));
        for (int r = 1; r < ranks; ++r) {
            const float* in = floats_of(inputs[r] + first, count, buffer);
            for (std::size_t i = 0; i < count; ++i) sum[i] += in[i];
        }
        const float* made = sum;
        map(
            out + first, count, [=](float value) SHARDSCOPE_INLINE_LAMBDA { return value * share; }, made);
    }
}

void max_ranks(const float* const* inputs, int ranks, float* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        float most = inputs[0][i];
        for (int r = 1; r < ranks; ++r) most = std::max(most, inputs[r][i]);
        out[i] = most;
    }
}

SHARDSCOPE_VECTOR_CLONES
void sum_ranks(const double* const* inputs, int ranks, double* out, std::size_t n, double factor) {
    for (std::size_t first = 0; first < n; first += kPart) {
        const std::size_t count = std::min(kPart, n - first);
        double sum[kPart];
        std::memcpy(sum, inputs[0] + first, count * sizeof(double));
        for (int r = 1; r < ranks; ++r) {
            const double* in = inputs[r] + first;
            for (std::size_t i = 0; i < count; ++i) sum[i] += in[i];
        }
        for (std::size_t i = 0; i < count; ++i) out[first + i] = sum[i] * factor;
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                           \
    template void add(const T*, const T*, T*, std::size_t); \
    template void subtract(const T*, T*, std::size_t);      \
    template void scale(T*, float, std::size_t);            \
    template void copy(const T*, T*, std::size_t);          \
    template void sum_ranks(const T* const*, int, T*, std::size_t, double);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)
#undef SHARDSCOPE_INSTANTIATE

template void accumulate(const float*, float*, std::size_t);
// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                            \
    template void cast(const float*, T*, std::size_t);       \
    template void cast(const T*, float*, std::size_t);       \
    template void accumulate(const T*, float*, std::size_t); \
    template void accumulate(const float*, T*, std::size_t); \
    template void accumulate(const T*, T*, std::size_t);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::kernels
