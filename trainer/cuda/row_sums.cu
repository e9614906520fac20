// See row_sums.h.
#include "trainer/cuda/column_sums.h"
#include "trainer/cuda/row_sums.h"

namespace shardscope::trainer::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(256)
    repeat_row(const T* row, T* x, std::int64_t elements, std::int64_t columns) {
    const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < elements) x[at] = row[at % columns];
}

}  // namespace

template <class T>
void row_sums(const DeviceContext& device, const T* x, T* sums, int rows, int columns) {
    const by_column::Cut cut(rows, columns, is_aligned(x));
    auto* parts = device.workspace.take_of<float>(by_column::parts_of(cut, 1));
    by_column::sum_columns(device, by_column::Values<T>{x}, parts, cut, by_column::RoundedSums<T, 1>{sums});
}

template <class T>
void launch_repeat_row(const T* row, T* x, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
    const std::int64_t elements = rows * columns;
    launch(repeat_row<T>, dim3(static_cast<unsigned>((elements + 255) / 256)), dim3(256), 0, stream, row, x,
           elements, columns);
}

template void row_sums(const DeviceContext&, const float*, float*, int, int);
template void row_sums(const DeviceContext&, const Bf16*, Bf16*, int, int);
template void row_sums(const DeviceContext&, const Fp16*, Fp16*, int, int);
template void launch_repeat_row(const float*, float*, std::int64_t, std::int64_t, cudaStream_t);
template void launch_repeat_row(const Bf16*, Bf16*, std::int64_t, std::int64_t, cudaStream_t);
template void launch_repeat_row(const Fp16*, Fp16*, std::int64_t, std::int64_t, cudaStream_t);

}  // namespace shardscope::trainer::cuda
