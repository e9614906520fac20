// ReLU and GELU; see activation.h.
#include "trainer/kernels/activation.h"

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

constexpr float kRootTwoOverPi = 0.797884560802865f;
constexpr float kCubic = 0.044715f;

// With u = sqrt(2/pi) (x + 0.044715 x^3): (1 + tanh u)/2 = 1/(1 + e^(-2u)), the share of x that passes.
// Above x = 8 that is 1 to the last bit, below -8 less than 1e-21: x is held there, so that its cube cannot
// overflow and no product becomes denormal (which would be a hundred times slower); e^(-2u) is then in range
// too.
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

}  // namespace

SHARDSCOPE_VECTOR_CLONES
void relu_forward(const float* x, float* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

SHARDSCOPE_VECTOR_CLONES
void relu_backward(const float* dy, const float* y, float* dx, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        const float gradient = dy[i];
        dx[i] = y[i] > 0.0f ? gradient : 0.0f;
    }
}

SHARDSCOPE_VECTOR_CLONES
void gelu_forward(const float* x, float* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] = held_below(x[i]) * gelu_share(held(x[i]));
}

SHARDSCOPE_VECTOR_CLONES
void gelu_backward(const float* dy, const float* x, float* dx, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        const float at = held(x[i]);
        const float share = gelu_share(at);
        const float slope = 2.0f * kRootTwoOverPi * (1.0f + 3.0f * kCubic * at * at);  // of 2u
        dx[i] = dy[i] * (share + at * share * (1.0f - share) * slope);
    }
}

}  // namespace shardscope::trainer::kernels
