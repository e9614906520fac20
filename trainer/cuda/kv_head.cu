// See kv_head.h.
#include <cstddef>
#include <cstdint>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/kv_head.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256;

struct Sizes {
    std::int64_t rows, row, part, sharing, first;

    explicit Sizes(const kernels::KvParts& s)
        : rows(s.rows), row(s.row), part(s.part), sharing(s.sharing), first(s.first()) {}

    std::int64_t of_ranks(std::int64_t ranks) const { return ranks * rows * 2 * part; }  // elements
    // The place in the head of element `at` of the parts; -1: it is of another head.
    __device__ std::int64_t in_head(std::int64_t at) const {
        const std::int64_t feature = at % part, kind = at / part % 2, line = at / part / 2;
        const std::int64_t rank = line / rows - first;
        if (rank < 0 || rank >= sharing) return -1;
        return line % rows * row + (kind * sharing + rank) * part + feature;
    }
};

__device__ std::int64_t own_element() {
    return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    take_kernel(const T* parts, T* head, std::int64_t begin, std::int64_t end, Sizes s) {
    const std::int64_t at = begin + own_element();
    if (at < end) head[s.in_head(at)] = parts[at];
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    spread_kernel(const T* head, T* parts, std::int64_t end, Sizes s) {
    const std::int64_t at = own_element();
    if (at >= end) return;
    const std::int64_t from = s.in_head(at);
    parts[at] = from < 0 ? rounded<T>(0.0f) : head[from];
}

unsigned blocks_of(std::int64_t elements) {
    return blocks_for(static_cast<std::size_t>(elements), kThreads);
}

}  // namespace

template <class T>
void take_kv_head(const DeviceContext& device, const T* parts, T* head, const kernels::KvParts& shape) {
    const Sizes s(shape);
    const std::int64_t begin = s.of_ranks(s.first), n = s.of_ranks(s.sharing);
    launch(take_kernel<T>, dim3(blocks_of(n)), dim3(kThreads), 0, device.stream, parts, head, begin,
           begin + n, s);
}

template <class T>
void spread_kv_head(const DeviceContext& device, const T* head, T* parts, const kernels::KvParts& shape) {
    const Sizes s(shape);
    const std::int64_t n = s.of_ranks(shape.ranks);
    launch(spread_kernel<T>, dim3(blocks_of(n)), dim3(kThreads), 0, device.stream, head, parts, n, s);
}

template void take_kv_head(const DeviceContext&, const float*, float*, const kernels::KvParts&);
template void take_kv_head(const DeviceContext&, const Bf16*, Bf16*, const kernels::KvParts&);
template void take_kv_head(const DeviceContext&, const Fp16*, Fp16*, const kernels::KvParts&);
template void spread_kv_head(const DeviceContext&, const float*, float*, const kernels::KvParts&);
template void spread_kv_head(const DeviceContext&, const Bf16*, Bf16*, const kernels::KvParts&);
template void spread_kv_head(const DeviceContext&, const Fp16*, Fp16*, const kernels::KvParts&);

}  // namespace shardscope::trainer::cuda
