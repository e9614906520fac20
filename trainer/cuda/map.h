// y[i] = f(x[i], …): the form of every kernel that computes each element on its own. Operands may be float or
// Bf16, y may be exactly one of the x. Each thread moves packs of 16 bytes of the narrower type if all
// operands are aligned for them, and reads all of its packs before it writes one, so that loads overlap.
// Bound by memory: (sum of the operands' sizes) * n bytes.
#pragma once

#include <cstddef>
#include <utility>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

inline constexpr int kMapThreads = 256;

__device__ inline std::size_t existing_of(std::size_t n, const Existing& rows) {
    if (!rows.counts) return n;
    std::size_t sum = 0;
    for (int g = 0; g < rows.groups; ++g) sum += static_cast<std::size_t>(rows.counts[g]);
    return sum * static_cast<std::size_t>(rows.features);
}

template <class F, int kCount, int kOperands, std::size_t... kIndex>
__device__ inline float apply_at(const F& f, const float (&in)[kOperands][kCount], int i,
                                 std::index_sequence<kIndex...>) {
    return f(in[kIndex][i]...);
}

template <int kCount, int kPacks, class F, class Y, class... X>
__global__ void __launch_bounds__(kMapThreads)
    map_kernel(Y* y, std::size_t all, Existing rows, bool packed, F f, const X*... x) {
    const std::size_t n = existing_of(all, rows);
    constexpr int kOperands = sizeof...(X);
    using Indices = std::make_index_sequence<kOperands>;
    const std::size_t block = std::size_t{blockIdx.x} * (kMapThreads * kPacks * kCount);
    float in[kPacks][kOperands][kCount];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        const std::size_t first = block + (p * kMapThreads + threadIdx.x) * kCount;
        int operand = 0;
        if (packed && first + kCount <= n) {
            (load_floats(x + first, in[p][operand++]), ...);
        } else {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                operand = 0;
                if (first + i < n) ((in[p][operand++][i] = to_float(x[first + i])), ...);
            }
        }
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        const std::size_t first = block + (p * kMapThreads + threadIdx.x) * kCount;
        if (packed && first + kCount <= n) {
            float out[kCount];
#pragma unroll
            for (int i = 0; i < kCount; ++i) out[i] = apply_at<F, kCount, kOperands>(f, in[p], i, Indices());
            store_floats(y + first, out);
        } else {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                if (first + i < n)
                    y[first + i] = rounded<Y>(apply_at<F, kCount, kOperands>(f, in[p], i, Indices()));
            }
        }
    }
}

// F: a type with `__device__ float operator()(float, …) const`.
template <class F, class Y, class... X>
void map(cudaStream_t stream, Y* y, std::size_t n, const Existing& rows, F f, const X*... x) {
    constexpr bool kNarrow = sizeof(Y) == 2 || ((sizeof(X) == 2) || ...);
    constexpr int kCount = kNarrow ? 8 : 4;
    constexpr int kPacks = sizeof...(X) <= 1 ? 4 : 2;
    const bool packed = is_aligned(y) && (is_aligned(x) && ...);
    launch(&map_kernel<kCount, kPacks, F, Y, X...>, blocks_for(n, kMapThreads * kPacks * kCount), kMapThreads,
           0, stream, y, n, rows, packed, f, x...);
}
template <class F, class Y, class... X>
void map(const DeviceContext& device, Y* y, std::size_t n, F f, const X*... x) {
    map(device.stream, y, n, Existing{}, f, x...);
}

}  // namespace shardscope::trainer::cuda
