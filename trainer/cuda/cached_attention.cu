// See cached_attention.h. A block for each head of each new token; its warps take the positions in turn, each
// with a largest score, a sum and an output of its own (online softmax), and the first warp merges them.
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/cached_attention.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpLanes;
constexpr int kPerLane = 8;  // features of a head that a lane has
constexpr int kWidest = kPerLane * kWarpLanes;

struct Sizes {
    int rows, width, heads, group, context, d, kv_row;

    explicit Sizes(const kernels::CacheShape& s)
        : rows(s.rows),
          width(s.width),
          heads(s.heads),
          group(s.group()),
          context(s.context),
          d(s.head_width()),
          kv_row(s.kv_row()) {}
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    store_kernel(const T* qkv, const std::int32_t* positions, T* cache, Sizes s) {
    const std::size_t at = blockIdx.x, sequence = at / static_cast<unsigned>(s.rows);
    const T* from = qkv + at * static_cast<std::size_t>(s.width + s.kv_row) + s.width;
    const std::size_t place =
        sequence * static_cast<std::size_t>(s.context) + static_cast<std::size_t>(positions[at]);
    T* to = cache + place * static_cast<std::size_t>(s.kv_row);
    for (int i = static_cast<int>(threadIdx.x); i < s.kv_row; i += static_cast<int>(blockDim.x))
        to[i] = from[i];
}

// The lane's features of a head; zeros beyond its width.
template <class T>
__device__ void load_head(const T* head, int d, float (&values)[kPerLane]) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const int feature = i * kWarpLanes + static_cast<int>(threadIdx.x % kWarpLanes);
        values[i] = feature < d ? to_float(head[feature]) : 0.0f;
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    attend_kernel(const T* qkv, const T* cache, const std::int32_t* positions, T* out, Sizes s, float scale) {
    const std::size_t at = blockIdx.x / static_cast<unsigned>(s.heads);
    const int head = static_cast<int>(blockIdx.x % static_cast<unsigned>(s.heads));
    const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
    const std::size_t sequence = at / static_cast<unsigned>(s.rows);
    const T* keys = cache +
                    sequence * static_cast<std::size_t>(s.context) * static_cast<std::size_t>(s.kv_row) +
                    head / s.group * s.d;
    float query[kPerLane], sum[kPerLane] = {}, total = 0.0f, largest = -INFINITY;
    load_head(qkv + at * static_cast<std::size_t>(s.width + s.kv_row) + head * s.d, s.d, query);
    for (int j = warp; j <= positions[at]; j += kWarps) {
        const T* key = keys + static_cast<std::size_t>(j) * static_cast<std::size_t>(s.kv_row);
        float k[kPerLane], v[kPerLane], score = 0.0f;
        load_head(key, s.d, k);
        load_head(key + s.kv_row / 2, s.d, v);
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) score += query[i] * k[i];
        score = scale * warp_sum(score);
        const float now = fmaxf(largest, score);
        const float keep = expf(largest - now), weight = expf(score - now);
        largest = now;
        total = total * keep + weight;
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) sum[i] = sum[i] * keep + weight * v[i];
    }
    __shared__ float of_warps[kWarps], totals[kWarps], sums[kWarps][kWidest];
    if (threadIdx.x % kWarpLanes == 0) {
        of_warps[warp] = largest;
        totals[warp] = total;
    }
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) sums[warp][i * kWarpLanes + threadIdx.x % kWarpLanes] = sum[i];
    __syncthreads();
    float most = -INFINITY, all = 0.0f;
    for (int w = 0; w < kWarps; ++w) most = fmaxf(most, of_warps[w]);
    for (int w = 0; w < kWarps; ++w) all += totals[w] * expf(of_warps[w] - most);
    for (int i = static_cast<int>(threadIdx.x); i < s.d; i += kThreads) {
        float merged = 0.0f;
        for (int w = 0; w < kWarps; ++w) merged += sums[w][i] * expf(of_warps[w] - most);
        out[at * static_cast<std::size_t>(s.width) + static_cast<std::size_t>(head * s.d + i)] =
            rounded<T>(merged / all);
    }
}

}  // namespace

template <class T>
void store_keys(const DeviceContext& device, const T* qkv, const std::int32_t* positions, T* cache,
                const kernels::CacheShape& shape) {
    const Sizes s(shape);
    launch(&store_kernel<T>, static_cast<unsigned>(shape.batch * shape.rows),
           threads_for(static_cast<std::size_t>(s.kv_row), kThreads), 0, device.stream, qkv, positions, cache,
           s);
}

template <class T>
void cached_attention_forward(const DeviceContext& device, const T* qkv, const T* cache,
                              const std::int32_t* positions, T* out, const kernels::CacheShape& shape) {
    const Sizes s(shape);
    if (s.d > kWidest) throw std::invalid_argument("attention to a cache has heads of at most 256 features");
    launch(&attend_kernel<T>, static_cast<unsigned>(shape.batch * shape.rows * shape.heads), kThreads, 0,
           device.stream, qkv, cache, positions, out, s, 1.0f / std::sqrt(static_cast<float>(s.d)));
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                         \
    template void store_keys(const DeviceContext&, const T*, const std::int32_t*, T*,                     \
                             const kernels::CacheShape&);                                                 \
    template void cached_attention_forward(const DeviceContext&, const T*, const T*, const std::int32_t*, \
                                           T*, const kernels::CacheShape&);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::cuda
