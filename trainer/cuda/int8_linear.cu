// See int8_linear.h. A warp for each column of y, of kRows rows at a time: its lanes take packs of the
// weight's row in turn.
#include <cstddef>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/int8_linear.h"
#include "trainer/cuda/rows.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpLanes;
constexpr int kRows = 8;  // of x and y, that share what a warp reads of the weight
constexpr int kPack = kPackOf<float>;

struct Sizes {
    int rows, in, out;
    bool packed;
};

__global__ void __launch_bounds__(kThreads)
    int8_linear_kernel(const float* x, const std::int8_t* q, const float* scales, const float* bias, float* y,
                       Sizes s) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
    const int column = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarpLanes;
    const int first = static_cast<int>(blockIdx.y) * kRows;
    if (column >= s.out) return;
    const std::int8_t* weights = q + static_cast<std::size_t>(column) * static_cast<std::size_t>(s.in);
    float sums[kRows] = {};
    for (int i = lane * kPack; i < s.in; i += kWarpLanes * kPack) {
        float w[kPack];
        load_part(weights, i, s.in, s.packed, w);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            if (first + r >= s.rows) break;
            float own[kPack];
            load_part(x + static_cast<std::size_t>(first + r) * static_cast<std::size_t>(s.in), i, s.in,
                      s.packed, own);
#pragma unroll
            for (int k = 0; k < kPack; ++k) sums[r] += own[k] * w[k];
        }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        if (first + r >= s.rows) break;
        const float sum = warp_sum(sums[r]) * scales[column];
        if (lane != 0) continue;
        y[static_cast<std::size_t>(first + r) * static_cast<std::size_t>(s.out) +
          static_cast<std::size_t>(column)] = sum + (bias ? bias[column] : 0.0f);
    }
}

}  // namespace

void int8_linear_forward(const DeviceContext& device, const float* x, const std::int8_t* q,
                         const float* scales, const float* bias, float* y, int rows, int in, int out) {
    const bool packed = in % kPack == 0 && is_aligned(x) && is_aligned(q);
    const dim3 grid(blocks_for(static_cast<std::size_t>(out), kWarps),
                    blocks_for(static_cast<std::size_t>(rows), kRows));
    launch(&int8_linear_kernel, grid, kThreads, 0, device.stream, x, q, scales, bias, y,
           Sizes{rows, in, out, packed});
}

}  // namespace shardscope::trainer::cuda
