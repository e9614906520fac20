// Sums and maxima over the threads of a warp or a block, for one-dimensional blocks of whole warps. The order
// is a fixed tree, so the same values give the same bits. Device code.
#pragma once

#include <cstdint>

#include "trainer/cuda/runtime.h"

namespace shardscope::trainer::cuda {

inline constexpr int kWarpLanes = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// Every lane gets the sum: at each level two lanes add the same two numbers.
template <class T>
__device__ inline T warp_sum(T value) {
#pragma unroll
    for (int lanes = kWarpLanes / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(kAllLanes, value, lanes);
    return value;
}

// A NaN may be ignored.
__device__ inline float warp_max(float value) {
#pragma unroll
    for (int lanes = kWarpLanes / 2; lanes > 0; lanes /= 2) {
        value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, lanes));
    }
    return value;
}

// Every thread gets the sum. All threads of the block must call it.
template <class T>
__device__ inline T block_sum(T value) {
    __shared__ T sums[kWarpLanes];
    const unsigned lane = threadIdx.x % kWarpLanes, warps = blockDim.x / kWarpLanes;
    value = warp_sum(value);
    if (warps == 1) return value;
    __syncthreads();  // the readers of the previous sum are done
    if (lane == 0) sums[threadIdx.x / kWarpLanes] = value;
    __syncthreads();
    return warp_sum(lane < warps ? sums[lane] : T{});
}

__device__ inline float block_max(float value) {
    __shared__ float largest[kWarpLanes];
    const unsigned lane = threadIdx.x % kWarpLanes, warps = blockDim.x / kWarpLanes;
    value = warp_max(value);
    if (warps == 1) return value;
    __syncthreads();
    if (lane == 0) largest[threadIdx.x / kWarpLanes] = value;
    __syncthreads();
    return warp_max(largest[lane < warps ? lane : 0]);
}

// The entry that a block works on: the last one whose first block is not after it.
template <class Table>
__device__ const auto& entry_of(const Table& table, int entries, std::int64_t block) {
    int low = 0;
    for (int high = entries; high - low > 1;) {
        const int middle = (low + high) / 2;
        (table.at[middle].first_block <= block ? low : high) = middle;
    }
    return table.at[low];
}

// The number of blocks of `part` elements for n; the launch refuses a number that is too large for a grid.
inline unsigned blocks_for(std::size_t n, std::size_t part) {
    return static_cast<unsigned>((n + part - 1) / part);
}

// Threads for `items`, in whole warps, at most `most`.
inline unsigned threads_for(std::size_t items, unsigned most) {
    const std::size_t warps = (items + kWarpLanes - 1) / kWarpLanes;
    return warps * kWarpLanes < most ? static_cast<unsigned>(warps == 0 ? 1 : warps) * kWarpLanes : most;
}

}  // namespace shardscope::trainer::cuda
