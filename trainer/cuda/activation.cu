// ReLU, GELU and gated SiLU; see activation.h. The formulas, and the bounds to which an argument is clamped,
// are those of trainer/kernels/activation.cpp.
#include "trainer/cuda/activation.h"
#include "trainer/cuda/map.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr float kRootTwoOverPi = 0.797884560802865f;
constexpr float kCubic = 0.044715f;
constexpr float kHeld = 8.0f;       // beyond it GELU's share of x is 1 to the last bit, or below 1e-21
constexpr float kSiluHeld = 80.0f;  // beyond it the sigmoid is 1 to the last bit, or 2e-35

// A NaN fails every comparison and stays a NaN.
__device__ inline float held_below(float x, float bound) {
    return x < -bound ? -bound : x;
}
__device__ inline float held(float x, float bound) {
    x = held_below(x, bound);
    return x > bound ? bound : x;
}

// 1 / (1 + e^-x); the divisor is below 2^126, as __fdividef requires.
__device__ inline float sigmoid(float x) {
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

// (1 + tanh u) / 2 = sigmoid(2 u)
__device__ inline float gelu_share(float x) {
    return sigmoid(2.0f * kRootTwoOverPi * (x + kCubic * x * x * x));
}

struct Relu {
    __device__ float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
};
struct ReluSlope {
    __device__ float operator()(float dy, float y) const { return y > 0.0f ? dy : 0.0f; }
};
struct Gelu {
    __device__ float operator()(float x) const { return held_below(x, kHeld) * gelu_share(held(x, kHeld)); }
};
struct GeluSlope {
    __device__ float operator()(float dy, float x) const {
        const float at = held(x, kHeld);
        const float share = gelu_share(at);
        const float slope = 2.0f * kRootTwoOverPi * (1.0f + 3.0f * kCubic * at * at);  // of 2u
        return dy * (share + at * share * (1.0f - share) * slope);
    }
};
struct SiluMul {
    __device__ float operator()(float gate, float up) const {
        return held_below(gate, kSiluHeld) * sigmoid(held(gate, kSiluHeld)) * up;
    }
};

// With s = sigmoid(g): the slope of g s is s (1 + g (1 - s)).
struct SiluMulSlopes {
    float dgate, dup;
    __device__ SiluMulSlopes(float dy, float gate, float up) {
        const float share = sigmoid(held(gate, kSiluHeld));
        dgate = dy * up * (share * (1.0f + held(gate, kSiluHeld) * (1.0f - share)));
        dup = dy * (held_below(gate, kSiluHeld) * share);
    }
};

// Not a map, because it has two results; each thread does one pack.
template <class T>
__global__ void __launch_bounds__(kMapThreads)
    silu_mul_backward_kernel(const T* dy, const T* gate, const T* up, T* dgate, T* dup, std::size_t n,
                             bool packed) {
    constexpr int kCount = kPackOf<T>;
    const std::size_t first = (std::size_t{blockIdx.x} * kMapThreads + threadIdx.x) * kCount;
    if (packed && first + kCount <= n) {
        float of_y[kCount], of_gate[kCount], of_up[kCount];
        load_floats(dy + first, of_y);
        load_floats(gate + first, of_gate);
        load_floats(up + first, of_up);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const SiluMulSlopes slopes(of_y[i], of_gate[i], of_up[i]);
            of_gate[i] = slopes.dgate;
            of_up[i] = slopes.dup;
        }
        store_floats(dgate + first, of_gate);
        store_floats(dup + first, of_up);
        return;
    }
    for (std::size_t i = first; i < n && i < first + kCount; ++i) {
        const SiluMulSlopes slopes(to_float(dy[i]), to_float(gate[i]), to_float(up[i]));
        dgate[i] = rounded<T>(slopes.dgate);
        dup[i] = rounded<T>(slopes.dup);
    }
}

}  // namespace

template <class T>
void launch_relu(const T* x, T* y, std::size_t n, cudaStream_t stream) {
    map(stream, y, n, Relu{}, x);
}

template <class T>
void launch_gelu(const T* x, T* y, std::size_t n, cudaStream_t stream) {
    map(stream, y, n, Gelu{}, x);
}

template <class T>
void relu_forward(const DeviceContext& device, const T* x, T* y, std::size_t n) {
    launch_relu(x, y, n, device.stream);
}

template <class T>
void relu_backward(const DeviceContext& device, const T* dy, const T* y, T* dx, std::size_t n) {
    map(device, dx, n, ReluSlope{}, dy, y);
}

template <class T>
void gelu_forward(const DeviceContext& device, const T* x, T* y, std::size_t n) {
    launch_gelu(x, y, n, device.stream);
}

template <class T>
void gelu_backward(const DeviceContext& device, const T* dy, const T* x, T* dx, std::size_t n) {
    map(device, dx, n, GeluSlope{}, dy, x);
}

template <class T>
void silu_mul_forward(const DeviceContext& device, const T* gate, const T* up, T* y, std::size_t n) {
    map(device, y, n, SiluMul{}, gate, up);
}

template <class T>
void silu_mul_backward(const DeviceContext& device, const T* dy, const T* gate, const T* up, T* dgate, T* dup,
                       std::size_t n) {
    const bool packed =
        is_aligned(dy) && is_aligned(gate) && is_aligned(up) && is_aligned(dgate) && is_aligned(dup);
    launch(&silu_mul_backward_kernel<T>, blocks_for(n, kMapThreads * kPackOf<T>), kMapThreads, 0,
           device.stream, dy, gate, up, dgate, dup, n, packed);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                              \
    template void launch_relu(const T*, T*, std::size_t, cudaStream_t);                        \
    template void launch_gelu(const T*, T*, std::size_t, cudaStream_t);                        \
    template void relu_forward(const DeviceContext&, const T*, T*, std::size_t);               \
    template void relu_backward(const DeviceContext&, const T*, const T*, T*, std::size_t);    \
    template void gelu_forward(const DeviceContext&, const T*, T*, std::size_t);               \
    template void gelu_backward(const DeviceContext&, const T*, const T*, T*, std::size_t);    \
    template void silu_mul_forward(const DeviceContext&, const T*, const T*, T*, std::size_t); \
    template void silu_mul_backward(const DeviceContext&, const T*, const T*, const T*, T*, T*, std::size_t);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)

}  // namespace shardscope::trainer::cuda
