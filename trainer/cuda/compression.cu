// See compression.h.
#include "trainer/cuda/blocks.h"
#include "trainer/cuda/compression.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr unsigned kMostThreads = 1024;

// As the CPU's (kernels/compression.cpp): `between` elements are from one vector to the next, `step` from one
// of its numbers to the next. A thread has the same numbers of every vector, so the block meets only in the
// sums.
__global__ void __launch_bounds__(kMostThreads)
    orthogonalize_kernel(float* first, std::size_t count, std::size_t length, std::size_t between,
                         std::size_t step, float epsilon, bool revives) {
    const auto dot = [=](const float* a, const float* b) {
        double sum = 0.0;
        for (std::size_t i = threadIdx.x; i < length; i += blockDim.x)
            sum += static_cast<double>(a[i * step]) * static_cast<double>(b[i * step]);
        return block_sum(sum);
    };
    const auto take_parts = [=](std::size_t v) {
        float* own = first + v * between;
        for (int pass = 0; pass < 2; ++pass) {
            for (std::size_t u = 0; u < v; ++u) {
                const float* before = first + u * between;
                const float along = static_cast<float>(dot(before, own));
                for (std::size_t i = threadIdx.x; i < length; i += blockDim.x)
                    own[i * step] -= along * before[i * step];
            }
        }
        return sqrt(dot(own, own));
    };
    for (std::size_t v = 0; v < count; ++v) {
        float* own = first + v * between;
        double norm = take_parts(v);
        if (norm == 0 && revives) {
            const std::size_t one = v % length;
            if (one % blockDim.x == threadIdx.x) own[one * step] = 1.0f;
            norm = take_parts(v);
        }
        norm += static_cast<double>(epsilon);
        if (norm == 0) continue;
        const float share = static_cast<float>(1 / norm);
        for (std::size_t i = threadIdx.x; i < length; i += blockDim.x) own[i * step] *= share;
    }
}

}  // namespace

void orthogonalize(const DeviceContext& device, float* matrix, std::size_t rows, std::size_t columns,
                   bool by_rows, float epsilon) {
    const std::size_t count = by_rows ? rows : columns, length = by_rows ? columns : rows;
    launch(&orthogonalize_kernel, 1, threads_for(length, kMostThreads), 0, device.stream, matrix, count,
           length, by_rows ? columns : std::size_t{1}, by_rows ? std::size_t{1} : columns, epsilon, by_rows);
}

}  // namespace shardscope::trainer::cuda
