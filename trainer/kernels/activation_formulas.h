// The activations on one element, for the CPU's loops and CUDA's kernels alike. A formula of activations.def
// called with x returns the result; called with dy and what its row keeps, it returns dy times the slope.
// Device::sigmoid(x) is 1 / (1 + e^-x) for |x| <= 80, with the device's own exponential and division. A NaN
// fails every comparison and stays a NaN.
#pragma once

#if defined(__CUDACC__) || defined(SHARDSCOPE_PLAYED_CUDA)
#include <cuda_runtime.h>
#define SHARDSCOPE_ACTIVATION __device__ inline
#else
#include "trainer/kernels/vectorize.h"
#define SHARDSCOPE_ACTIVATION SHARDSCOPE_INLINE
#endif

namespace shardscope::trainer::kernels {

SHARDSCOPE_ACTIVATION float held_below(float x, float bound) {
    return x < -bound ? -bound : x;
}
SHARDSCOPE_ACTIVATION float held(float x, float bound) {
    x = held_below(x, bound);
    return x > bound ? bound : x;
}

// y = max(x, 0). Instead of y the backward may read x, whose sign is the same.
template <class Device>
struct Relu {
    SHARDSCOPE_ACTIVATION float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
    SHARDSCOPE_ACTIVATION float operator()(float dy, float y) const { return y > 0.0f ? dy : 0.0f; }
};

// y = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), as in GPT-2. Hendrycks, Gimpel: "Gaussian error
// linear units", 2016.
template <class Device>
struct Gelu {
    static constexpr float kRootTwoOverPi = 0.797884560802865f;
    static constexpr float kCubic = 0.044715f;
    // Above x = 8 the share is 1 to the last bit, below -8 it is less than 1e-21: x is clamped there, so that
    // its cube cannot overflow and no product is denormal (which would be a hundred times slower).
    static constexpr float kHeld = 8.0f;

    // The share of x that passes: (1 + tanh u)/2 = sigmoid(2u).
    static SHARDSCOPE_ACTIVATION float share(float x) {
        return Device::sigmoid(2.0f * kRootTwoOverPi * (x + kCubic * x * x * x));
    }
    SHARDSCOPE_ACTIVATION float operator()(float x) const {
        return held_below(x, kHeld) * share(held(x, kHeld));
    }
    SHARDSCOPE_ACTIVATION float operator()(float dy, float x) const {
        const float at = held(x, kHeld);
        const float passes = share(at);
        const float slope = 2.0f * kRootTwoOverPi * (1.0f + 3.0f * kCubic * at * at);  // of 2u
        return dy * (passes + at * passes * (1.0f - passes) * slope);
    }
};

// y = max(x, 0)^2. So, Manke, Liu, Dai, Shazeer, Le: "Primer: searching for efficient transformers for
// language modeling", 2021.
template <class Device>
struct SquaredRelu {
    SHARDSCOPE_ACTIVATION float operator()(float x) const { return Relu<Device>()(x) * Relu<Device>()(x); }
    SHARDSCOPE_ACTIVATION float operator()(float dy, float x) const {
        return dy * (2.0f * Relu<Device>()(x));
    }
};

// silu(x) = x s, s = sigmoid(x), for the kernels of SwiGLU, which compute s once for two results.
template <class Device>
struct Silu {
    static constexpr float kHeld = 80.0f;  // beyond it s is 1 to the last bit, or 2e-35

    static SHARDSCOPE_ACTIVATION float share(float x) { return Device::sigmoid(held(x, kHeld)); }
    static SHARDSCOPE_ACTIVATION float value(float x, float s) { return held_below(x, kHeld) * s; }
    static SHARDSCOPE_ACTIVATION float slope(float x, float s) {
        return s * (1.0f + held(x, kHeld) * (1.0f - s));
    }
};

}  // namespace shardscope::trainer::kernels
