#include <algorithm>
#include <cstdint>

#include "trainer/cuda/local_kernels.h"

namespace shardscope::trainer::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBlocks = 4096;

// The type in which T is summed.
template <class T>
struct Wide {
    using type = float;
};
template <>
struct Wide<double> {
    using type = double;
};
template <class T>
using wide = typename Wide<T>::type;

__device__ inline double widened(double x) {
    return x;
}
__device__ inline float widened(float x) {
    return x;
}
__device__ inline float widened(Bf16 x) {
    return to_float(x);
}
__device__ inline float widened(Fp16 x) {
    return to_float(x);
}
template <class T>
__device__ inline T narrowed(wide<T> x) {
    if constexpr (sizeof(T) == 2) {
        return rounded<T>(x);
    } else {
        return x;
    }
}

template <class T>
__device__ inline T sum_at(const MemberBuffers& buffers, std::size_t i, wide<T> factor) {
    wide<T> sum = widened(static_cast<const T*>(buffers.in[0])[i]);
    for (int m = 1; m < buffers.members; ++m) sum += widened(static_cast<const T*>(buffers.in[m])[i]);
    return narrowed<T>(sum * factor);
}

// The calling thread's first element in a one-dimensional grid, and the step to its next.
__device__ inline std::size_t first_of_thread() {
    return std::size_t{blockIdx.x} * kThreads + threadIdx.x;
}
__device__ inline std::size_t step_of_thread() {
    return std::size_t{gridDim.x} * kThreads;
}

// Copies 16 bytes at a time if both addresses are aligned for it.
__device__ inline void copy_bytes(unsigned char* to, const unsigned char* from, std::size_t bytes) {
    if (to == from) return;
    std::size_t done = 0;
    if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % sizeof(uint4) ==
        0) {
        const std::size_t packs = bytes / sizeof(uint4);
        for (std::size_t i = first_of_thread(); i < packs; i += step_of_thread()) {
            reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
        }
        done = packs * sizeof(uint4);
    }
    for (std::size_t i = done + first_of_thread(); i < bytes; i += step_of_thread()) to[i] = from[i];
}

// A row of blocks for each piece.
__global__ void __launch_bounds__(kThreads)
    ncclDevKernel_AllGather_local(MemberBuffers buffers, unsigned char* out, std::size_t piece,
                                  std::size_t bytes) {
    const std::size_t begin = blockIdx.y * piece;
    if (begin >= bytes) return;
    const std::size_t count = begin + piece < bytes ? piece : bytes - begin;
    copy_bytes(out + begin, static_cast<const unsigned char*>(buffers.in[blockIdx.y]), count);
}

__global__ void __launch_bounds__(kThreads)
    ncclDevKernel_Broadcast_local(const unsigned char* in, unsigned char* out, std::size_t bytes) {
    copy_bytes(out, in, bytes);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    ncclDevKernel_ReduceScatter_local(MemberBuffers buffers, T* out, std::size_t first, std::size_t n,
                                      wide<T> factor) {
    for (std::size_t i = first_of_thread(); i < n; i += step_of_thread()) {
        out[i] = sum_at<T>(buffers, first + i, factor);
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    ncclDevKernel_AllReduce_local(MemberBuffers buffers, std::size_t first, std::size_t n, wide<T> factor) {
    for (std::size_t i = first_of_thread(); i < n; i += step_of_thread()) {
        const T sum = sum_at<T>(buffers, first + i, factor);
        for (int m = 0; m < buffers.members; ++m) static_cast<T*>(buffers.out[m])[first + i] = sum;
    }
}

__global__ void __launch_bounds__(kThreads)
    ncclDevKernel_AllReduce_Max_local(MemberBuffers buffers, std::size_t first, std::size_t n) {
    for (std::size_t i = first_of_thread(); i < n; i += step_of_thread()) {
        float most = static_cast<const float*>(buffers.in[0])[first + i];
        for (int m = 1; m < buffers.members; ++m)
            most = fmaxf(most, static_cast<const float*>(buffers.in[m])[first + i]);
        for (int m = 0; m < buffers.members; ++m) static_cast<float*>(buffers.out[m])[first + i] = most;
    }
}

__global__ void ncclDevKernel_Barrier_local() {}

template <class T>
__global__ void __launch_bounds__(kThreads) scale_sum_kernel(T* x, std::size_t n, wide<T> factor) {
    for (std::size_t i = first_of_thread(); i < n; i += step_of_thread()) {
        x[i] = narrowed<T>(widened(x[i]) * factor);
    }
}

// At least one block, so that a trace shows an empty part too.
dim3 blocks_for(std::size_t items, unsigned rows = 1) {
    const std::size_t blocks = std::clamp<std::size_t>((items + kThreads - 1) / kThreads, 1, kMostBlocks);
    return {static_cast<unsigned>(blocks), rows};
}

}  // namespace

void gather_members(const MemberBuffers& buffers, void* out, std::size_t piece, std::size_t bytes,
                    cudaStream_t stream) {
    launch(ncclDevKernel_AllGather_local,
           blocks_for(piece / sizeof(uint4), static_cast<unsigned>(buffers.members)), dim3(kThreads), 0,
           stream, buffers, static_cast<unsigned char*>(out), piece, bytes);
}

void broadcast_first(const MemberBuffers& buffers, void* out, std::size_t bytes, cudaStream_t stream) {
    launch(ncclDevKernel_Broadcast_local, blocks_for(bytes / sizeof(uint4)), dim3(kThreads), 0, stream,
           static_cast<const unsigned char*>(buffers.in[0]), static_cast<unsigned char*>(out), bytes);
}

template <class T>
void reduce_members(const MemberBuffers& buffers, T* out, std::size_t first, std::size_t n, double factor,
                    cudaStream_t stream) {
    launch(ncclDevKernel_ReduceScatter_local<T>, blocks_for(n), dim3(kThreads), 0, stream, buffers, out,
           first, n, static_cast<wide<T>>(factor));
}

template <class T>
void all_reduce_members(const MemberBuffers& buffers, std::size_t first, std::size_t n, double factor,
                        cudaStream_t stream) {
    launch(ncclDevKernel_AllReduce_local<T>, blocks_for(n), dim3(kThreads), 0, stream, buffers, first, n,
           static_cast<wide<T>>(factor));
}

void max_members(const MemberBuffers& buffers, std::size_t first, std::size_t n, cudaStream_t stream) {
    launch(ncclDevKernel_AllReduce_Max_local, blocks_for(n), dim3(kThreads), 0, stream, buffers, first, n);
}

void barrier_members(cudaStream_t stream) {
    launch(ncclDevKernel_Barrier_local, dim3(1), dim3(1), 0, stream);
}

template <class T>
void scale_sum(T* x, std::size_t n, double factor, cudaStream_t stream) {
    launch(scale_sum_kernel<T>, blocks_for(n), dim3(kThreads), 0, stream, x, n, static_cast<wide<T>>(factor));
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                               \
    template void reduce_members<T>(const MemberBuffers&, T*, std::size_t, std::size_t, double, \
                                    cudaStream_t);                                              \
    template void all_reduce_members<T>(const MemberBuffers&, std::size_t, std::size_t, double, \
                                        cudaStream_t);                                          \
    template void scale_sum<T>(T*, std::size_t, double, cudaStream_t);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)
SHARDSCOPE_INSTANTIATE(double)

}  // namespace shardscope::trainer::cuda
