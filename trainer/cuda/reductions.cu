// See reductions.h and sums.h.
#include "trainer/cuda/reductions.h"
#include "trainer/cuda/sums.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kPartsThreads = 1024;

__global__ void __launch_bounds__(kPartsThreads)
    sum_parts_kernel(const double* parts, std::size_t count, double divisor, double* total) {
    double sum = 0.0;
    for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *total = sum / divisor;
}

struct Square {
    __device__ double operator()(float x) const { return static_cast<double>(x) * static_cast<double>(x); }
};

// One thread adds `sums` in order; there are few, one per slot.
__global__ void clip_factor_kernel(const double* sums, std::size_t count, double max_norm, double* norm,
                                   float* factor) {
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) sum += sums[i];
    *norm = sqrt(sum);
    const double ratio = max_norm / (*norm + 1e-6);
    *factor = static_cast<float>(ratio > 1.0 ? 1.0 : ratio);
}

// Infinities and NaNs have all bits of the exponent set.
__device__ inline bool is_finite(float x) {
    return (bits_of(x) & 0x7f800000u) != 0x7f800000u;
}
__device__ inline bool is_finite(Bf16 x) {
    return (x.bits & 0x7f80u) != 0x7f80u;
}
__device__ inline bool is_finite(Fp16 x) {
    return (x.bits & 0x7c00u) != 0x7c00u;
}

constexpr int kFlagPacks = 4;  // per thread

template <class T>
__global__ void __launch_bounds__(kSumThreads)
    flag_not_finite_kernel(const T* x, std::size_t n, std::int32_t module, std::int32_t* flag, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const std::size_t block = std::size_t{blockIdx.x} * (kSumThreads * kFlagPacks * kCount);
    bool finite = true;
#pragma unroll
    for (int p = 0; p < kFlagPacks; ++p) {
        const std::size_t first = block + (p * kSumThreads + threadIdx.x) * kCount;
        if (packed && first + kCount <= n) {
            const Pack<T, kCount> pack = load_pack<kCount>(x + first);
#pragma unroll
            for (int i = 0; i < kCount; ++i) finite = finite && is_finite(pack.at[i]);
        } else {
            for (std::size_t i = first; i < n && i < first + kCount; ++i) finite = finite && is_finite(x[i]);
        }
    }
    // One write for the whole block, because the flag may be in host memory.
    if (__syncthreads_or(finite ? 0 : 1) != 0 && threadIdx.x == 0) atomicCAS(flag, -1, module);
}

__global__ void flag_one_not_finite_kernel(const double* one, std::int32_t module, std::int32_t* flag) {
    if (!(fabs(*one) <= 1.7976931348623157e308)) atomicCAS(flag, -1, module);
}

// One thread per element, so that each block has one write at most.
__global__ void __launch_bounds__(kSumThreads)
    unscale_kernel(float* x, std::size_t n, float factor, float* found) {
    const std::size_t i = std::size_t{blockIdx.x} * kSumThreads + threadIdx.x;
    bool finite = true;
    if (i < n) {
        x[i] *= factor;
        finite = is_finite(x[i]);
    }
    if (__syncthreads_or(finite ? 0 : 1) != 0 && threadIdx.x == 0) *found = 1.0f;
}

}  // namespace

void sum_parts(const DeviceContext& device, const double* parts, std::size_t count, double divisor,
               double* total) {
    launch(&sum_parts_kernel, 1, threads_for(count, kPartsThreads), 0, device.stream, parts, count, divisor,
           total);
}

template <class T>
void sum_of_squares(const DeviceContext& device, const T* x, std::size_t n, double* total) {
    sum(device, n, Square{}, 1.0, total, x);
}

void clip_factor(const DeviceContext& device, const double* sums, std::size_t count, double max_norm,
                 double* norm, float* factor) {
    launch(&clip_factor_kernel, 1, 1, 0, device.stream, sums, count, max_norm, norm, factor);
}

void unscale(const DeviceContext& device, float* x, std::size_t n, float factor, float* found) {
    launch(&unscale_kernel, blocks_for(n, kSumThreads), kSumThreads, 0, device.stream, x, n, factor, found);
}

template <class T>
void flag_not_finite(const DeviceContext& device, const T* x, std::size_t n, std::int32_t module,
                     std::int32_t* flag) {
    launch(&flag_not_finite_kernel<T>, blocks_for(n, kSumThreads * kFlagPacks * kPackOf<T>), kSumThreads, 0,
           device.stream, x, n, module, flag, is_aligned(x));
}

void flag_not_finite(const DeviceContext& device, const double* one, std::int32_t module,
                     std::int32_t* flag) {
    launch(&flag_one_not_finite_kernel, 1, 1, 0, device.stream, one, module, flag);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                       \
    template void sum_of_squares(const DeviceContext&, const T*, std::size_t, double*); \
    template void flag_not_finite(const DeviceContext&, const T*, std::size_t, std::int32_t, std::int32_t*);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::cuda
