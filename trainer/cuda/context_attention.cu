// See context_attention.h. Lanes stand for keys (or queries) where a whole dot product is needed, and for
// features where rows are summed; there all lanes take the same row, and pass around the shares that each has
// computed.
#include <cmath>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/context_attention.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpLanes;

// ContextCut's arithmetic, and where heads begin.
struct Sizes {
    int batch, rows, heads, width, kv_heads, d, group, step, blocks;
    int ranks, place, own;  // of the cut
    bool causal;
    std::int64_t row, kv_row;  // elements of a row of qkv and of kv
    float scale;

    explicit Sizes(const ContextSizes& s)
        : batch(s.batch),
          rows(s.rows),
          heads(s.heads),
          width(s.width),
          kv_heads(s.kv_heads),
          d(s.width / s.heads),
          group(s.heads / s.kv_heads),
          step(s.step),
          blocks(s.step == 0 ? s.cut.ranks : 1),
          ranks(s.cut.ranks),
          place(s.cut.place),
          own(s.cut.own()),
          causal(s.cut.causal),
          row(s.width + std::int64_t{2} * s.kv_heads * d),
          kv_row(std::int64_t{2} * s.kv_heads * d),
          scale(1.0f / std::sqrt(static_cast<float>(d))) {}

    __device__ int rank_of(int block) const {
        return step == 0 ? block : (place + ranks - (step - 1)) % ranks;
    }
    // The place in the sequence of the i-th token of a rank.
    __device__ int position(int rank, int i) const {
        const int chunk = rows / own;
        return (i < chunk ? rank : own * ranks - 1 - rank) * chunk + i % chunk;
    }
    __device__ bool sees(int query, int key_rank, int key) const {
        return !causal || position(key_rank, key) <= position(place, query);
    }
    // The first element of a key's row in kv, for the head of keys `head`; the value's is kv_heads * d on.
    __device__ std::int64_t key(int block, int b, int key_place, int head) const {
        return ((static_cast<std::int64_t>(block) * batch + b) * rows + key_place) * kv_row +
               static_cast<std::int64_t>(head) * d;
    }
    __device__ std::int64_t query(int b, int i, int head) const {
        return (static_cast<std::int64_t>(b) * rows + i) * row + static_cast<std::int64_t>(head) * d;
    }
    __device__ std::int64_t out(int b, int i, int head) const {
        return (static_cast<std::int64_t>(b) * rows + i) * width + static_cast<std::int64_t>(head) * d;
    }
};

template <class A, class B>
__device__ inline float product(const A* a, const B* b, int d) {
    float sum = 0.0f;
    for (int e = 0; e < d; ++e) sum = fmaf(to_float(a[e]), to_float(b[e]), sum);
    return sum;
}

__device__ inline std::int64_t own_row() {
    return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarpLanes;
}
__device__ inline int own_lane() {
    return static_cast<int>(threadIdx.x % kWarpLanes);
}

// sum over the keys j of all blocks of share(block, j) * row(block, j)[e], put(e, sum) for e < d.
template <class Share, class Row, class Put>
__device__ inline void add_rows(const Sizes& s, Share share_of, Row row_of, Put put) {
    const int lane = own_lane();
    for (int e = lane; e - lane < s.d; e += kWarpLanes) {  // all lanes take part
        float total = 0.0f;
        for (int block = 0; block < s.blocks; ++block) {
            for (int j = 0; j < s.rows; j += kWarpLanes) {
                const float share = j + lane < s.rows ? share_of(block, j + lane) : 0.0f;
                for (int other = 0; other < kWarpLanes && j + other < s.rows; ++other) {
                    const float of_other = __shfl_sync(kAllLanes, share, other);
                    if (e < s.d && of_other != 0.0f)
                        total = fmaf(of_other, to_float(row_of(block, j + other)[e]), total);
                }
            }
        }
        if (e < s.d) put(e, total);
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(const T* qkv, const T* kv, float* out, float* lse, Sizes s) {
    const std::int64_t row = own_row();  // of [B,H,R]
    if (row >= static_cast<std::int64_t>(s.batch) * s.heads * s.rows) return;
    const int i = static_cast<int>(row % s.rows), head = static_cast<int>(row / s.rows) % s.heads;
    const int b = static_cast<int>(row / s.rows) / s.heads, lane = own_lane(), key_head = head / s.group;
    const T* const q = qkv + s.query(b, i, head);
    const auto score = [&](int block, int j) {
        return s.sees(i, s.rank_of(block), j) ? product(q, kv + s.key(block, b, j, key_head), s.d) * s.scale
                                              : -INFINITY;
    };
    float largest = -INFINITY;
    for (int block = 0; block < s.blocks; ++block)
        for (int j = lane; j < s.rows; j += kWarpLanes) largest = fmaxf(largest, score(block, j));
    largest = warp_max(largest);
    const float base = largest == -INFINITY ? 0.0f : largest;
    float sum = 0.0f;
    for (int block = 0; block < s.blocks; ++block)
        for (int j = lane; j < s.rows; j += kWarpLanes) sum += expf(score(block, j) - base);
    sum = warp_sum(sum);
    // 0: the row sees none of these keys. A NaN stays one.
    if (lane == 0) lse[row] = sum != 0.0f ? base + logf(sum) : -INFINITY;
    const float inverse = sum != 0.0f ? 1.0f / sum : 0.0f;
    float* const to = out + s.out(b, i, head);
    add_rows(
        s, [&](int block, int j) { return expf(score(block, j) - base) * inverse; },
        [&](int block, int j) { return kv + s.key(block, b, j, key_head + s.kv_heads); },
        [&](int e, float total) { to[e] = total; });
}

// dq, and delta = sum of dout * out.
template <class T>
__global__ void __launch_bounds__(kThreads)
    queries_kernel(const T* dout, const T* qkv, const T* kv, const T* out, const float* lse, float* dq,
                   float* delta, Sizes s) {
    const std::int64_t row = own_row();
    if (row >= static_cast<std::int64_t>(s.batch) * s.heads * s.rows) return;
    const int i = static_cast<int>(row % s.rows), head = static_cast<int>(row / s.rows) % s.heads;
    const int b = static_cast<int>(row / s.rows) / s.heads, key_head = head / s.group;
    const T* const q = qkv + s.query(b, i, head);
    const T* const go = dout + s.out(b, i, head);
    const float own_delta = product(go, out + s.out(b, i, head), s.d), own_lse = lse[row];
    if (own_lane() == 0) delta[row] = own_delta;
    float* const to = dq + s.out(b, i, head);
    add_rows(
        s,
        [&](int block, int j) {
            if (!s.sees(i, s.rank_of(block), j)) return 0.0f;
            const T* const k = kv + s.key(block, b, j, key_head);
            const T* const v = kv + s.key(block, b, j, key_head + s.kv_heads);
            return expf(product(q, k, s.d) * s.scale - own_lse) * (product(go, v, s.d) - own_delta);
        },
        [&](int block, int j) { return kv + s.key(block, b, j, key_head); },
        [&](int e, float total) { to[e] = (s.step > 1 ? to[e] : 0.0f) + total * s.scale; });
}

// dk and dv; the deltas are ready.
template <class T>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(const T* dout, const T* qkv, const T* kv, const float* lse, const float* delta, float* dkv,
                Sizes s) {
    const std::int64_t row = own_row();  // of [n,B,G,R]
    if (row >= static_cast<std::int64_t>(s.blocks) * s.batch * s.kv_heads * s.rows) return;
    const int j = static_cast<int>(row % s.rows);
    const auto heads = static_cast<int>(row / s.rows);
    const int key_head = heads % s.kv_heads, b = heads / s.kv_heads % s.batch;
    const int block = heads / s.kv_heads / s.batch, key_rank = s.rank_of(block), lane = own_lane();
    const std::int64_t key = s.key(block, b, j, key_head), value = s.key(block, b, j, key_head + s.kv_heads);
    for (int e = lane; e - lane < s.d; e += kWarpLanes) {  // all lanes take part
        float dk = 0.0f, dv = 0.0f;
        for (int head = key_head * s.group; head < (key_head + 1) * s.group; ++head) {
            const std::int64_t first = (static_cast<std::int64_t>(b) * s.heads + head) * s.rows;
            for (int i = 0; i < s.rows; i += kWarpLanes) {
                const int mine = i + lane;
                float share = 0.0f, ds = 0.0f;
                if (mine < s.rows && s.sees(mine, key_rank, j)) {
                    const T* const q = qkv + s.query(b, mine, head);
                    const T* const go = dout + s.out(b, mine, head);
                    share = expf(product(q, kv + key, s.d) * s.scale - lse[first + mine]);
                    ds = share * (product(go, kv + value, s.d) - delta[first + mine]);
                }
                for (int other = 0; other < kWarpLanes && i + other < s.rows; ++other) {
                    const float p_other = __shfl_sync(kAllLanes, share, other);
                    const float ds_other = __shfl_sync(kAllLanes, ds, other);
                    if (e >= s.d) continue;
                    dk = fmaf(ds_other, to_float(qkv[s.query(b, i + other, head) + e]), dk);
                    dv = fmaf(p_other, to_float(dout[s.out(b, i + other, head) + e]), dv);
                }
            }
        }
        if (e >= s.d) continue;
        dkv[key + e] = dk * s.scale;
        dkv[value + e] = dv;
    }
}

__global__ void __launch_bounds__(kThreads)
    merge_kernel(float* out, float* lse, const float* part, const float* part_lse, Sizes s) {
    const std::int64_t row = own_row();
    if (row >= static_cast<std::int64_t>(s.batch) * s.heads * s.rows) return;
    const int i = static_cast<int>(row % s.rows), head = static_cast<int>(row / s.rows) % s.heads;
    const std::int64_t first = s.out(static_cast<int>(row / s.rows) / s.heads, i, head);
    const float here = lse[row], there = part_lse[row];
    if (there == -INFINITY) return;
    const float largest = fmaxf(here, there), own = expf(here - largest), other = expf(there - largest);
    const float scale = 1.0f / (own + other);
    for (int e = own_lane(); e < s.d; e += kWarpLanes)
        out[first + e] = (out[first + e] * own + part[first + e] * other) * scale;
    __syncwarp();  // all lanes have read lse
    if (own_lane() == 0) lse[row] = largest + logf(own + other);
}

__global__ void __launch_bounds__(kThreads) positions_kernel(std::int32_t* positions, Sizes s) {
    const auto i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    if (i < s.rows) positions[i] = s.position(s.place, i);
}

template <class To, class From>
__global__ void __launch_bounds__(kThreads)
    columns_kernel(const From* x, To* y, std::int64_t n, int columns, int to_row, int from_row) {
    const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (at >= n) return;
    const std::int64_t row = at / columns, column = at % columns;
    y[row * to_row + column] = rounded<To>(to_float(x[row * from_row + column]));
}

dim3 warps_for(std::int64_t rows) {
    return dim3(blocks_for(static_cast<std::size_t>(rows), kWarps));
}
std::int64_t query_rows(const Sizes& s) {
    return static_cast<std::int64_t>(s.batch) * s.heads * s.rows;
}

}  // namespace

template <class T>
void context_attention_forward(const DeviceContext& device, const T* qkv, const T* kv, float* out, float* lse,
                               const ContextSizes& sizes) {
    const Sizes s(sizes);
    launch(forward_kernel<T>, warps_for(query_rows(s)), dim3(kThreads), 0, device.stream, qkv, kv, out, lse,
           s);
}

template <class T>
void context_attention_backward(const DeviceContext& device, const T* dout, const T* qkv, const T* kv,
                                const T* out, const float* lse, float* dq, float* dkv, float* delta,
                                const ContextSizes& sizes) {
    const Sizes s(sizes);
    launch(queries_kernel<T>, warps_for(query_rows(s)), dim3(kThreads), 0, device.stream, dout, qkv, kv, out,
           lse, dq, delta, s);
    launch(keys_kernel<T>, warps_for(static_cast<std::int64_t>(s.blocks) * s.batch * s.kv_heads * s.rows),
           dim3(kThreads), 0, device.stream, dout, qkv, kv, lse, static_cast<const float*>(delta), dkv, s);
}

void merge_attention(const DeviceContext& device, float* out, float* lse, const float* part,
                     const float* part_lse, const ContextSizes& sizes) {
    const Sizes s(sizes);
    launch(merge_kernel, warps_for(query_rows(s)), dim3(kThreads), 0, device.stream, out, lse, part, part_lse,
           s);
}

void context_positions(const DeviceContext& device, std::int32_t* positions, int rows,
                       const kernels::ContextCut& cut) {
    const Sizes s(ContextSizes{1, rows, 1, 1, 1, 0, cut});
    launch(positions_kernel, dim3(blocks_for(static_cast<std::size_t>(rows), kThreads)), dim3(kThreads), 0,
           device.stream, positions, s);
}

template <class To, class From>
void copy_columns(const DeviceContext& device, const From* x, To* y, int rows, int columns, int to_row,
                  int from_row) {
    const std::int64_t n = static_cast<std::int64_t>(rows) * columns;
    launch(columns_kernel<To, From>, dim3(blocks_for(static_cast<std::size_t>(n), kThreads)), dim3(kThreads),
           0, device.stream, x, y, n, columns, to_row, from_row);
}

template void context_attention_forward(const DeviceContext&, const float*, const float*, float*, float*,
                                        const ContextSizes&);
template void context_attention_forward(const DeviceContext&, const Bf16*, const Bf16*, float*, float*,
                                        const ContextSizes&);
template void context_attention_forward(const DeviceContext&, const Fp16*, const Fp16*, float*, float*,
                                        const ContextSizes&);
template void context_attention_backward(const DeviceContext&, const float*, const float*, const float*,
                                         const float*, const float*, float*, float*, float*,
                                         const ContextSizes&);
template void context_attention_backward(const DeviceContext&, const Bf16*, const Bf16*, const Bf16*,
                                         const Bf16*, const float*, float*, float*, float*,
                                         const ContextSizes&);
template void context_attention_backward(const DeviceContext&, const Fp16*, const Fp16*, const Fp16*,
                                         const Fp16*, const float*, float*, float*, float*,
                                         const ContextSizes&);
template void copy_columns(const DeviceContext&, const float*, float*, int, int, int, int);
template void copy_columns(const DeviceContext&, const float*, Bf16*, int, int, int, int);
template void copy_columns(const DeviceContext&, const float*, Fp16*, int, int, int, int);
template void copy_columns(const DeviceContext&, const Bf16*, Bf16*, int, int, int, int);
template void copy_columns(const DeviceContext&, const Fp16*, Fp16*, int, int, int, int);

}  // namespace shardscope::trainer::cuda
