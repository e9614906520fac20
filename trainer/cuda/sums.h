// Sums over a whole buffer in fp64: part by part into the workspace, then the parts by one block. The order
// depends only on n, so the same values give the same bits on every device.
#pragma once

#include <cstddef>
#include <type_traits>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

inline constexpr int kSumThreads = 256;
inline constexpr int kSumPacks = 4;  // per thread, loaded before any is added

// *total = (parts[0] + … + parts[count - 1]) / divisor, on the device.
void sum_parts(const DeviceContext& device, const double* parts, std::size_t count, double divisor,
               double* total);

template <class F, class... X>
__global__ void __launch_bounds__(kSumThreads)
    sum_kernel(double* parts, std::size_t n, bool packed, F f, const X*... x) {
    constexpr int kCount = kPackOf<std::common_type_t<X...>>;
    const std::size_t block = std::size_t{blockIdx.x} * (kSumThreads * kSumPacks * kCount);
    float in[kSumPacks][sizeof...(X)][kCount];
#pragma unroll
    for (int p = 0; p < kSumPacks; ++p) {
        const std::size_t first = block + (p * kSumThreads + threadIdx.x) * kCount;
        int operand = 0;
        if (packed && first + kCount <= n) {
            (load_floats(x + first, in[p][operand++]), ...);
        } else {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                operand = 0;
                ((in[p][operand++][i] = first + i < n ? to_float(x[first + i]) : 0.0f), ...);
            }
        }
    }
    double sum = 0.0;
#pragma unroll
    for (int p = 0; p < kSumPacks; ++p) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            if constexpr (sizeof...(X) == 1) {
                sum += f(in[p][0][i]);
            } else {
                sum += f(in[p][0][i], in[p][1][i]);
            }
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// *total = (sum of f(x[i], …)) / divisor over i < n, for one or two x of one type. F returns a double; f of
// zeros is 0.
template <class F, class... X>
void sum(const DeviceContext& device, std::size_t n, F f, double divisor, double* total, const X*... x) {
    constexpr std::size_t kPart = std::size_t{kSumThreads} * kSumPacks * kPackOf<std::common_type_t<X...>>;
    const std::size_t count = (n + kPart - 1) / kPart;
    double* parts = device.workspace.take_of<double>(count);
    launch(&sum_kernel<F, X...>, blocks_for(n, kPart), kSumThreads, 0, device.stream, parts, n,
           (is_aligned(x) && ...), f, x...);
    sum_parts(device, parts, count, divisor, total);
}

}  // namespace shardscope::trainer::cuda
