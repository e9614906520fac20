// See activation.h. The arithmetic on an element is the CPU's: trainer/kernels/activation_formulas.h.
#include "trainer/cuda/activation.h"
#include "trainer/cuda/map.h"
#include "trainer/kernels/activation_formulas.h"

namespace shardscope::trainer::cuda {
namespace {

// The divisor is below 2^126, as __fdividef requires.
struct Intrinsics {
    static __device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
};

using GatedSilu = kernels::Silu<Intrinsics>;
struct SiluMul {
    __device__ float operator()(float gate, float up) const {
        return GatedSilu::value(gate, GatedSilu::share(gate)) * up;
    }
};

struct SiluMulSlopes {
    float dgate, dup;
    __device__ SiluMulSlopes(float dy, float gate, float up) {
        const float share = GatedSilu::share(gate);
        dgate = dy * up * GatedSilu::slope(gate, share);
        dup = dy * GatedSilu::value(gate, share);
    }
};

// Not a map, because it has two results; each thread does one pack.
template <class T>
__global__ void __launch_bounds__(kMapThreads)
    silu_mul_backward_kernel(const T* dy, const T* gate, const T* up, T* dgate, T* dup, std::size_t all,
                             Existing rows, bool packed) {
    const std::size_t n = existing_of(all, rows);
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
void activation_forward(kernels::ActivationKind kind, const T* x, T* y, std::size_t n, const Existing& rows,
                        cudaStream_t stream) {
    switch (kind) {
#define ACTIVATION(name, Formula, ...)  \
    case kernels::ActivationKind::name: \
        return map(stream, y, n, rows, kernels::Formula<Intrinsics>(), x);
#include "trainer/kernels/activations.def"
#undef ACTIVATION
        case kernels::ActivationKind::none:
            break;
    }
}

template <class T>
void activation_backward(kernels::ActivationKind kind, const T* dy, const T* kept, T* dx, std::size_t n,
                         const Existing& rows, cudaStream_t stream) {
    switch (kind) {
#define ACTIVATION(name, Formula, ...)  \
    case kernels::ActivationKind::name: \
        return map(stream, dx, n, rows, kernels::Formula<Intrinsics>(), dy, kept);
#include "trainer/kernels/activations.def"
#undef ACTIVATION
        case kernels::ActivationKind::none:
            break;
    }
}

template <class T>
void silu_mul_forward(const DeviceContext& device, const T* gate, const T* up, T* y, std::size_t n,
                      const Existing& rows) {
    map(device.stream, y, n, rows, SiluMul{}, gate, up);
}

template <class T>
void silu_mul_backward(const DeviceContext& device, const T* dy, const T* gate, const T* up, T* dgate, T* dup,
                       std::size_t n, const Existing& rows) {
    const bool packed =
        is_aligned(dy) && is_aligned(gate) && is_aligned(up) && is_aligned(dgate) && is_aligned(dup);
    launch(&silu_mul_backward_kernel<T>, blocks_for(n, kMapThreads * kPackOf<T>), kMapThreads, 0,
           device.stream, dy, gate, up, dgate, dup, n, rows, packed);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                            \
    template void activation_forward(kernels::ActivationKind, const T*, T*, std::size_t, const Existing&,    \
                                     cudaStream_t);                                                          \
    template void activation_backward(kernels::ActivationKind, const T*, const T*, T*, std::size_t,          \
                                      const Existing&, cudaStream_t);                                        \
    template void silu_mul_forward(const DeviceContext&, const T*, const T*, T*, std::size_t,                \
                                   const Existing&);                                                         \
    template void silu_mul_backward(const DeviceContext&, const T*, const T*, const T*, T*, T*, std::size_t, \
                                    const Existing&);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::cuda
