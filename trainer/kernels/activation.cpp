// ReLU, GELU and gated SiLU; see activation.h.
#include "trainer/kernels/activation.h"

#include <algorithm>

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

constexpr float kRootTwoOverPi = 0.797884560802865f;
constexpr float kCubic = 0.044715f;

// With u = sqrt(2/pi) (x + 0.044715 x^3): (1 + tanh u)/2 = 1/(1 + e^(-2u)), the share of x that passes. Above
// x = 8 that is 1 to the last bit, below -8 less than 1e-21: x is clamped there, so that its cube cannot
// overflow and no product is denormal (which would be a hundred times slower); e^(-2u) is then in range too.
constexpr float kHeld = 8.0f;

SHARDSCOPE_INLINE float held_below(float x) {
    return x < -kHeld ? -kHeld : x;
}

SHARDSCOPE_INLINE float held(float x) {
    x = held_below(x);
    return x > kHeld ? kHeld : x;
}

SHARDSCOPE_INLINE float gelu_share(float x) {
    const float u = kRootTwoOverPi * (x + kCubic * x * x * x);
    return 1.0f / (1.0f + exp_in_range(-2.0f * u));
}

// SiLU's x is clamped likewise, where its sigmoid is 1 to the last bit or 2e-35.
constexpr float kSiluHeld = 80.0f;

SHARDSCOPE_INLINE float silu_held_below(float x) {
    return x < -kSiluHeld ? -kSiluHeld : x;
}

SHARDSCOPE_INLINE float silu_held(float x) {
    x = silu_held_below(x);
    return x > kSiluHeld ? kSiluHeld : x;
}

SHARDSCOPE_INLINE float sigmoid(float x) {
    return 1.0f / (1.0f + exp_in_range(-silu_held(x)));
}

}  // namespace

template <class T>
SHARDSCOPE_VECTOR_CLONES void relu_forward(const T* x, T* y, std::size_t n) {
    map(
        y, n, [](float value) SHARDSCOPE_INLINE_LAMBDA { return value < 0.0f ? 0.0f : value; }, x);
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void relu_backward(const T* dy, const T* y, T* dx, std::size_t n) {
    map(
        dx, n,
        [](float gradient, float value) SHARDSCOPE_INLINE_LAMBDA { return value > 0.0f ? gradient : 0.0f; },
        dy, y);
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void gelu_forward(const T* x, T* y, std::size_t n) {
    map(
        y, n,
        [](float value) SHARDSCOPE_INLINE_LAMBDA { return held_below(value) * gelu_share(held(value)); }, x);
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void gelu_backward(const T* dy, const T* x, T* dx, std::size_t n) {
    map(
        dx, n,
        [](float gradient, float value) SHARDSCOPE_INLINE_LAMBDA {
            const float at = held(value);
            const float share = gelu_share(at);
            const float slope = 2.0f * kRootTwoOverPi * (1.0f + 3.0f * kCubic * at * at);  // of 2u
            return gradient * (share + at * share * (1.0f - share) * slope);
        },
        dy, x);
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void silu_mul_forward(const T* gate, const T* up, T* y, std::size_t n) {
    map(
        y, n, [](float g, float u) SHARDSCOPE_INLINE_LAMBDA { return silu_held_below(g) * sigmoid(g) * u; },
        gate, up);
}

// With s = sigmoid(g): the slope of g s is s (1 + g (1 - s)).
template <class T>
SHARDSCOPE_VECTOR_CLONES void silu_mul_backward(const T* dy, const T* gate, const T* up, T* dgate, T* dup,
                                                std::size_t n) {
    constexpr std::size_t kPart = 512;  // both results part by part: the inputs are read once
    for (std::size_t first = 0; first < n; first += kPart) {
        const std::size_t count = std::min(kPart, n - first);
        float share[kPart];
        float result[kPart];
        const float* s = share;
        map(
            share, count, [](float g) SHARDSCOPE_INLINE_LAMBDA { return sigmoid(g); }, gate + first);
        map(
            result, count,
            [](float d, float g, float u, float part)
                SHARDSCOPE_INLINE_LAMBDA { return d * u * (part * (1.0f + silu_held(g) * (1.0f - part))); },
            dy + first, gate + first, up + first, s);
        map(
            dup + first, count,
            [](float d, float g, float part)
                SHARDSCOPE_INLINE_LAMBDA { return d * (silu_held_below(g) * part); },
            dy + first, gate + first, s);
        const float* made = result;
        map(
            dgate + first, count, [](float value) SHARDSCOPE_INLINE_LAMBDA { return value; }, made);
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                        \
    template void relu_forward(const T*, T*, std::size_t);               \
    template void relu_backward(const T*, const T*, T*, std::size_t);    \
    template void gelu_forward(const T*, T*, std::size_t);               \
    template void gelu_backward(const T*, const T*, T*, std::size_t);    \
    template void silu_mul_forward(const T*, const T*, T*, std::size_t); \
    template void silu_mul_backward(const T*, const T*, const T*, T*, T*, std::size_t);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)

}  // namespace shardscope::trainer::kernels
