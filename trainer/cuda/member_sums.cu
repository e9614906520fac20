#include <algorithm>

#include "trainer/cuda/member_sums.h"

namespace shardscope::trainer::cuda {

namespace {

constexpr unsigned kThreads = 256;

// What the sum is kept in.
template <class T>
struct Wide {
    using type = float;
};
template <>
struct Wide<double> {
    using type = double;
};

__device__ inline double widened(double x) {
    return x;
}
__device__ inline float widened(float x) {
    return x;
}
__device__ inline float widened(Bf16 x) {
    return to_float(x);
}
template <class T, class Sum>
__device__ inline T narrowed(Sum x) {
    if constexpr (sizeof(T) == 2) {
        return to_bf16(x);
    } else {
        return x;
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(MemberBuffers buffers, std::size_t first, std::size_t n, typename Wide<T>::type factor) {
    const std::size_t step = std::size_t{gridDim.x} * kThreads;
    const std::size_t to = buffers.outputs > 1 ? first : 0;
    for (std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
        auto sum = widened(static_cast<const T*>(buffers.in[0])[first + i]);
        for (int m = 1; m < buffers.members; ++m) {
            sum += widened(static_cast<const T*>(buffers.in[m])[first + i]);
        }
        const T out = narrowed<T>(sum * factor);
        for (int o = 0; o < buffers.outputs; ++o) static_cast<T*>(buffers.out[o])[to + i] = out;
    }
}

}  // namespace

template <class T>
void sum_members(const MemberBuffers& buffers, std::size_t first, std::size_t n, double factor,
                 cudaStream_t stream) {
    const std::size_t blocks = std::min<std::size_t>((n + kThreads - 1) / kThreads, 4096);
    launch(sum_kernel<T>, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0, stream, buffers, first, n,
           static_cast<typename Wide<T>::type>(factor));
}

template void sum_members<float>(const MemberBuffers&, std::size_t, std::size_t, double, cudaStream_t);
template void sum_members<Bf16>(const MemberBuffers&, std::size_t, std::size_t, double, cudaStream_t);
template void sum_members<double>(const MemberBuffers&, std::size_t, std::size_t, double, cudaStream_t);

}  // namespace shardscope::trainer::cuda
