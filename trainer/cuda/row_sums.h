// The gradient of a bias: the sum of a matrix's rows, which are a few thousand of a Linear and millions of a
// convolution. Reads the matrix once, so it is bound by memory.
#pragma once

#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

// sums[j] = x[0,j] + … + x[rows-1,j], row-major: of the rows of a slice in fp32, of the slices in fp64,
// rounded once. The order of the sum depends only on the shape.
template <class T>
void row_sums(const DeviceContext& device, const T* x, T* sums, int rows, int columns);

// Sets each row of x [rows, columns] to `row`.
template <class T>
void launch_repeat_row(const T* row, T* x, std::int64_t rows, std::int64_t columns, cudaStream_t stream);

}  // namespace shardscope::trainer::cuda
