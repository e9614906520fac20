// What gradients pass before and after they are sent in fewer bytes, on a CUDA device:
// trainer/kernels/compression.h, with sums in fp64 in another fixed order.
#pragma once

#include <cstddef>

#include "trainer/cuda/device.h"

namespace shardscope::trainer::cuda {

// A matrix of `rows` x `columns`; its columns or, with `by_rows`, its rows become orthonormal. One block
// reads it about twice for each pair of vectors: they are few and, as a rule, in its cache.
void orthogonalize(const DeviceContext& device, float* matrix, std::size_t rows, std::size_t columns,
                   bool by_rows, float epsilon);

}  // namespace shardscope::trainer::cuda
