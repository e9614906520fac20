// See row_sums.h. A block takes 32 bytes of columns, the smallest unit of a memory access, and all their
// rows: thread (r, c) of 512 x 2 adds rows r, r + 512 … of its 16 bytes of columns. Thus many
// threads read even a narrow matrix (768 columns of Bf16: 48 blocks), without partial sums in memory. Then
// the block adds its 512 partial sums: in pairs within a warp, then warp by warp.
#include <algorithm>

#include "trainer/cuda/row_sums.h"

namespace shardscope::trainer::cuda {

namespace {

constexpr int kThreads = 1024;
constexpr int kSideBySide = 2;  // threads per row, each with a pack of 16 bytes
constexpr int kRows = kThreads / kSideBySide;

template <class T>
__global__ void __launch_bounds__(kThreads)
    row_sums(const T* x, T* sums, std::int64_t rows, std::int64_t columns, bool packed) {
    constexpr int kPack = kPackOf<T>;
    float* const partial = dynamic_shared<float>();  // [warps][2 packs of columns]
    const int thread = static_cast<int>(threadIdx.x);
    const int side = thread % kSideBySide;
    const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * kSideBySide + side) * kPack;
    const int width =
        static_cast<int>(min(static_cast<long long>(kPack), static_cast<long long>(columns - column)));

    float sum[kPack] = {};
    if (packed && width == kPack) {
#pragma unroll 4
        for (std::int64_t row = thread / kSideBySide; row < rows; row += kRows) {
            float values[kPack];
            load_floats(x + row * columns + column, values);
#pragma unroll
            for (int i = 0; i < kPack; ++i) sum[i] += values[i];
        }
    } else {
        for (std::int64_t row = thread / kSideBySide; row < rows; row += kRows) {
            for (int i = 0; i < kPack; ++i) {
                if (i < width) sum[i] += to_float(x[row * columns + column + i]);
            }
        }
    }
    // First the lanes of one side are added, then the warps.
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
        for (int lanes = 16; lanes >= kSideBySide; lanes /= 2) {
            sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], lanes);
        }
    }
    constexpr int kWarps = kThreads / 32;
    constexpr int kColumns = kSideBySide * kPack;
    const int warp = thread / 32;
    if (thread % 32 < kSideBySide) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) partial[warp * kColumns + side * kPack + i] = sum[i];
    }
    __syncthreads();
    if (thread >= kColumns) return;
    const std::int64_t own = static_cast<std::int64_t>(blockIdx.x) * kColumns + thread;
    if (own >= columns) return;
    float total = 0.0f;
    for (int i = 0; i < kWarps; ++i) total += partial[i * kColumns + thread];
    sums[own] = rounded<T>(total);
}

template <class T>
__global__ void __launch_bounds__(256)
    repeat_row(const T* row, T* x, std::int64_t elements, std::int64_t columns) {
    const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < elements) x[at] = row[at % columns];
}

}  // namespace

template <class T>
void launch_row_sums(const T* x, T* sums, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
    constexpr std::int64_t kColumns = kSideBySide * kPackOf<T>;
    const bool packed = is_aligned(x) && columns % kPackOf<T> == 0;
    launch(row_sums<T>, dim3(static_cast<unsigned>((columns + kColumns - 1) / kColumns)), dim3(kThreads),
           kThreads / 32 * static_cast<std::size_t>(kColumns) * sizeof(float), stream, x, sums, rows, columns,
           packed);
}

template <class T>
void launch_repeat_row(const T* row, T* x, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
    const std::int64_t elements = rows * columns;
    launch(repeat_row<T>, dim3(static_cast<unsigned>((elements + 255) / 256)), dim3(256), 0, stream, row, x,
           elements, columns);
}

template void launch_row_sums(const float*, float*, std::int64_t, std::int64_t, cudaStream_t);
template void launch_row_sums(const Bf16*, Bf16*, std::int64_t, std::int64_t, cudaStream_t);
template void launch_row_sums(const Fp16*, Fp16*, std::int64_t, std::int64_t, cudaStream_t);
template void launch_repeat_row(const float*, float*, std::int64_t, std::int64_t, cudaStream_t);
template void launch_repeat_row(const Bf16*, Bf16*, std::int64_t, std::int64_t, cudaStream_t);
template void launch_repeat_row(const Fp16*, Fp16*, std::int64_t, std::int64_t, cudaStream_t);

}  // namespace shardscope::trainer::cuda
