// Gradients of the norms' parameters: sums over the rows, column by column; see norms.h. A block sums a slice
// of the rows for the columns of one warp's packs, its warps taking rows in turn; then the slices are summed
// in double, in order. The rows of a slice depend only on the number of rows.
#include <algorithm>

#include "trainer/cuda/column_sums.h"
#include "trainer/cuda/norms.h"
#include "trainer/cuda/rows.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kSlices = 128;       // the intended number of slices
constexpr int kMostOfSlice = 512;  // rows that are summed in float: 64 per warp

int rows_of_slice(int rows) {
    return std::clamp((rows + kSlices - 1) / kSlices, kWarps, kMostOfSlice);
}

// Columns of a block.
template <class T>
constexpr int kColumns = kWarpLanes* kPackOf<T>;

// parts: [slices, cols] for gamma, followed by as many for beta. kBeta: layer norm, which also has a mean.
template <class T, bool kBeta>
__global__ void __launch_bounds__(kWarps* kWarpLanes)
    slice_kernel(const T* dy, const T* x, const float* mean, const float* rstd, float* parts, int rows,
                 int cols, int slice_rows, int slices, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const int lane = static_cast<int>(threadIdx.x) % kWarpLanes,
              warp = static_cast<int>(threadIdx.x) / kWarpLanes;
    const int slice = static_cast<int>(blockIdx.x) % slices;
    const int first = static_cast<int>(blockIdx.x) / slices * kColumns<T> + lane * kCount;
    const int end = min((slice + 1) * slice_rows, rows);
    float of_gamma[kCount] = {}, of_beta[kCount] = {};
    if (first < cols) {
#pragma unroll 4
        for (int row = slice * slice_rows + warp; row < end; row += kWarps) {
            const std::size_t begin = static_cast<std::size_t>(row) * static_cast<std::size_t>(cols);
            const float center = kBeta ? mean[row] : 0.0f;
            const float inverse = rstd[row];
            float gradient[kCount], in[kCount];
            load_part(dy + begin, first, cols, packed, gradient);
            load_part(x + begin, first, cols, packed, in);
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                of_gamma[i] += gradient[i] * ((in[i] - center) * inverse);
                if constexpr (kBeta) of_beta[i] += gradient[i];
            }
        }
    }
    __shared__ float sums[kBeta ? 2 : 1][kWarps][kColumns<T>];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        sums[0][warp][lane * kCount + i] = of_gamma[i];
        if constexpr (kBeta) sums[1][warp][lane * kCount + i] = of_beta[i];
    }
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < kColumns<T>; c += kWarps * kWarpLanes) {
        const int column = static_cast<int>(blockIdx.x) / slices * kColumns<T> + c;
        if (column >= cols) break;
#pragma unroll
        for (int s = 0; s < (kBeta ? 2 : 1); ++s) {
            float sum = 0.0f;
#pragma unroll
            for (int w = 0; w < kWarps; ++w) sum += sums[s][w][c];
            parts[(static_cast<std::size_t>(s) * slices + slice) * static_cast<std::size_t>(cols) + column] =
                sum;
        }
    }
}

template <class T, bool kBeta>
void backward_parameters(const DeviceContext& device, const T* dy, const T* x, const float* mean,
                         const float* rstd, T* dgamma, T* dbeta, int rows, int cols) {
    constexpr int kSums = kBeta ? 2 : 1;
    const int slice_rows = rows_of_slice(rows), slices = (rows + slice_rows - 1) / slice_rows;
    const std::size_t of_one = static_cast<std::size_t>(slices) * static_cast<std::size_t>(cols);
    auto* parts = device.workspace.take_of<float>(of_one * kSums);
    const bool packed = cols % kPackOf<T> == 0 && is_aligned(dy) && is_aligned(x);
    const unsigned tiles = blocks_for(static_cast<std::size_t>(cols), kColumns<T>);
    launch(&slice_kernel<T, kBeta>, tiles * static_cast<unsigned>(slices), kWarps * kWarpLanes, 0,
           device.stream, dy, x, mean, rstd, parts, rows, cols, slice_rows, slices, packed);
    by_column::RoundedSums<T, kSums> results{dgamma};
    if constexpr (kBeta) results.results[1] = dbeta;
    by_column::sum_slices<kSums>(device, parts, results, cols, slices);
}

}  // namespace

template <class T>
void layer_norm_backward_parameters(const DeviceContext& device, const T* dy, const T* x, const float* mean,
                                    const float* rstd, T* dgamma, T* dbeta, int rows, int cols) {
    backward_parameters<T, true>(device, dy, x, mean, rstd, dgamma, dbeta, rows, cols);
}

template <class T>
void rms_norm_backward_parameters(const DeviceContext& device, const T* dy, const T* x, const float* rstd,
                                  T* dgamma, int rows, int cols) {
    backward_parameters<T, false>(device, dy, x, nullptr, rstd, dgamma, nullptr, rows, cols);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                          \
    template void layer_norm_backward_parameters(const DeviceContext&, const T*, const T*, const float*,   \
                                                 const float*, T*, T*, int, int);                          \
    template void rms_norm_backward_parameters(const DeviceContext&, const T*, const T*, const float*, T*, \
                                               int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::cuda
