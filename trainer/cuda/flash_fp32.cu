// Fused attention in fp32; see flash.h. A block is 16 x 16 threads; thread (y, x) owns rows y, y + 16 … and
// columns x, x + 16 … of every tile of scores, and columns x, x + 16 … of the D sums of its rows. Tiles lie
// in shared memory; the probabilities that a row's 16 threads compute pass through it too, within their half
// warp.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "trainer/cuda/flash.h"

namespace shardscope::trainer::cuda {
namespace flash_fp32 {
namespace {

constexpr int kSide = 16;
constexpr int kThreads = kSide * kSide;

// Elements from row to row of a tile: one 16-byte piece more than D, so that rows begin in different banks.
template <int D>
constexpr int kPitch = D + 4;

__device__ inline int own_row() {
    return static_cast<int>(threadIdx.x) / kSide;
}
__device__ inline int own_column() {
    return static_cast<int>(threadIdx.x) % kSide;
}

// Rows [first, first + kRows) of a head's matrix; zeros beyond the context and the head's width.
template <int D, int kRows>
__device__ inline void fetch_tile(float* tile, const float* from, std::int64_t stride, int first,
                                  const AttentionSizes& s) {
    constexpr int kPieces = D / 4;
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kPieces; i += kThreads) {
        const int r = i / kPieces, column = i % kPieces * 4, row = first + r;
        const bool there = row < s.context && column < s.d;
        const float* source = from + row * stride + column;
        Pack<float, 4> piece = {};
        if (there && s.packed) {
            piece = load_pack<4>(source);
        } else if (there) {
            for (int e = 0; e < 4 && column + e < s.d; ++e) piece.at[e] = source[e];
        }
        store_pack(tile + r * kPitch<D> + column, piece);
    }
}

// c[i][j] = row y + 16 i of `left` times row x + 16 j of `right`.
template <int D, int R, int C>
__device__ __forceinline__ void products(float (&c)[R][C], const float* left, const float* right) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
#pragma unroll
        for (int j = 0; j < C; ++j) c[i][j] = 0.0f;
    }
#pragma unroll 4
    for (int k = 0; k < D; k += 4) {
        Pack<float, 4> a[R], b[C];
#pragma unroll
        for (int i = 0; i < R; ++i) a[i] = load_pack<4>(left + (own_row() + kSide * i) * kPitch<D> + k);
#pragma unroll
        for (int j = 0; j < C; ++j) b[j] = load_pack<4>(right + (own_column() + kSide * j) * kPitch<D> + k);
#pragma unroll
        for (int i = 0; i < R; ++i) {
#pragma unroll
            for (int j = 0; j < C; ++j) {
#pragma unroll
                for (int e = 0; e < 4; ++e) c[i][j] = fmaf(a[i].at[e], b[j].at[e], c[i][j]);
            }
        }
    }
}

// Stores a tile of what the scores became, [16 R, 16 C], for add_products.
template <int R, int C>
__device__ __forceinline__ void put_shares(float* shares, const float (&c)[R][C]) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
#pragma unroll
        for (int j = 0; j < C; ++j) {
            shares[(own_row() + kSide * i) * kPitch<kSide * C> + own_column() + kSide * j] = c[i][j];
        }
    }
}

// sums[i][j] += row y + 16 i of `shares` times column x + 16 j of `right` [16 C, D].
template <int D, int R, int C>
__device__ __forceinline__ void add_products(float (&sums)[R][D / kSide], const float* shares,
                                             const float* right) {
#pragma unroll 2
    for (int k = 0; k < kSide * C; k += 4) {
        Pack<float, 4> a[R];
#pragma unroll
        for (int i = 0; i < R; ++i) {
            a[i] = load_pack<4>(shares + (own_row() + kSide * i) * kPitch<kSide * C> + k);
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
#pragma unroll
            for (int j = 0; j < D / kSide; ++j) {
                const float b = right[(k + e) * kPitch<D> + own_column() + kSide * j];
#pragma unroll
                for (int i = 0; i < R; ++i) sums[i][j] = fmaf(a[i].at[e], b, sums[i][j]);
            }
        }
    }
}

template <int D, int R>
__device__ __forceinline__ void store_rows(float* to, const float (&sums)[R][D / kSide], std::int64_t stride,
                                           int first, const float (&factors)[R], const AttentionSizes& s) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
        const int row = first + own_row() + kSide * i;
#pragma unroll
        for (int j = 0; j < D / kSide; ++j) {
            const int column = own_column() + kSide * j;
            if (row < s.context && column < s.d) to[row * stride + column] = sums[i][j] * factors[i];
        }
    }
}

// The 16 threads of a row get the same result.
template <class F>
__device__ inline float combine_row(float value, F f) {
    for (int lanes = kSide / 2; lanes > 0; lanes /= 2) {
        value = f(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    }
    return value;
}

template <int D, int R, int C>
__global__ void __launch_bounds__(kThreads, 2)
    flash_forward_fp32(FlashForward<float> tensors, AttentionSizes s) {
    constexpr int kRows = kSide * R, kKeys = kSide * C;
    float* const queries = dynamic_shared<float>();
    float* const keys = queries + kRows * kPitch<D>;
    float* const values = keys + kKeys * kPitch<D>;
    float* const shares = values + kKeys * kPitch<D>;

    const int sequences = s.batch * s.heads;
    const int blocks = (s.context + kRows - 1) / kRows;
    const int first = (blocks - 1 - static_cast<int>(blockIdx.x) / sequences) * kRows;  // long loops first
    const int sequence = static_cast<int>(blockIdx.x) % sequences;
    const HeadOffsets at = offsets_of(s, sequence / s.heads, sequence % s.heads);

    float sums[R][D / kSide] = {}, largest[R], sum[R];
#pragma unroll
    for (int i = 0; i < R; ++i) {
        largest[i] = -INFINITY;
        sum[i] = 0.0f;
    }
    fetch_tile<D, kRows>(queries, tensors.qkv + at.query, s.row, first, s);
    const int end = min(s.context, first + kRows);
    for (int column = 0; column < end; column += kKeys) {
        __syncthreads();  // all threads are done with the previous tile
        fetch_tile<D, kKeys>(keys, tensors.qkv + at.key, s.row, column, s);
        fetch_tile<D, kKeys>(values, tensors.qkv + at.value, s.row, column, s);
        __syncthreads();
        float scores[R][C];
        products<D, R, C>(scores, queries, keys);
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const int row = first + own_row() + kSide * i;
            float top = -INFINITY;
#pragma unroll
            for (int j = 0; j < C; ++j) {
                const bool seen = column + own_column() + kSide * j <= row;
                scores[i][j] = seen ? scores[i][j] * s.scale : -INFINITY;
                top = fmaxf(top, scores[i][j]);
            }
            top = combine_row(top, [](float a, float b) { return fmaxf(a, b); });
            top = fmaxf(top, largest[i]);
            const float keep = expf(largest[i] - top);  // 0 for the first tile
            largest[i] = top;
            float added = 0.0f;
#pragma unroll
            for (int j = 0; j < C; ++j) {
                scores[i][j] = expf(scores[i][j] - top);
                added += scores[i][j];
            }
            sum[i] = sum[i] * keep + added;
#pragma unroll
            for (int j = 0; j < D / kSide; ++j) sums[i][j] *= keep;
        }
        put_shares<R, C>(shares, scores);
        __syncwarp();
        add_products<D, R, C>(sums, shares, values);
    }

    float inverse[R];
#pragma unroll
    for (int i = 0; i < R; ++i) {
        const float total = combine_row(sum[i], [](float a, float b) { return a + b; });
        inverse[i] = 1.0f / total;
        const int row = first + own_row() + kSide * i;
        if (own_column() == 0 && row < s.context) tensors.lse[at.row + row] = largest[i] + logf(total);
    }
    store_rows<D, R>(tensors.out + at.out, sums, s.width, first, inverse, s);
}

// A score and an element of dp become p and ds; see flash_backward_bf16.cu.
__device__ inline void to_gradient(float& score, float& gradient, bool seen, float scale, float lse,
                                   float delta) {
    score = seen ? expf(fmaf(score, scale, -lse)) : 0.0f;
    gradient = seen ? score * (gradient - delta) : 0.0f;
}

template <int D, int R, int C>
__global__ void __launch_bounds__(kThreads, 2)
    flash_backward_queries_fp32(FlashBackward<float> tensors, AttentionSizes s) {
    constexpr int kRows = kSide * R, kKeys = kSide * C;
    float* const queries = dynamic_shared<float>();
    float* const gradients = queries + kRows * kPitch<D>;
    float* const keys = gradients + kRows * kPitch<D>;
    float* const values = keys + kKeys * kPitch<D>;
    float* const shares = values + kKeys * kPitch<D>;

    const int sequences = s.batch * s.heads;
    const int blocks = (s.context + kRows - 1) / kRows;
    const int first = (blocks - 1 - static_cast<int>(blockIdx.x) / sequences) * kRows;
    const int sequence = static_cast<int>(blockIdx.x) % sequences;
    const HeadOffsets at = offsets_of(s, sequence / s.heads, sequence % s.heads);

    float sums[R][D / kSide] = {}, lse[R], delta[R], factors[R];
#pragma unroll
    for (int i = 0; i < R; ++i) {
        const int row = first + own_row() + kSide * i;
        lse[i] = row < s.context ? tensors.lse[at.row + row] : 0.0f;
        delta[i] = row < s.context ? tensors.delta[at.row + row] : 0.0f;
        factors[i] = s.scale;
    }
    fetch_tile<D, kRows>(queries, tensors.qkv + at.query, s.row, first, s);
    fetch_tile<D, kRows>(gradients, tensors.dout + at.out, s.width, first, s);
    const int end = min(s.context, first + kRows);
    for (int column = 0; column < end; column += kKeys) {
        __syncthreads();  // all threads are done with the previous tile
        fetch_tile<D, kKeys>(keys, tensors.qkv + at.key, s.row, column, s);
        fetch_tile<D, kKeys>(values, tensors.qkv + at.value, s.row, column, s);
        __syncthreads();
        float p[R][C], ds[R][C];
        products<D, R, C>(p, queries, keys);
        products<D, R, C>(ds, gradients, values);
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const int row = first + own_row() + kSide * i;
#pragma unroll
            for (int j = 0; j < C; ++j) {
                const bool seen = column + own_column() + kSide * j <= row && row < s.context;
                to_gradient(p[i][j], ds[i][j], seen, s.scale, lse[i], delta[i]);
            }
        }
        put_shares<R, C>(shares, ds);
        __syncwarp();
        add_products<D, R, C>(sums, shares, keys);
    }
    store_rows<D, R>(tensors.dqkv + at.query, sums, s.row, first, factors, s);
}

template <int D, int R, int C>
__global__ void __launch_bounds__(kThreads, 2)
    flash_backward_keys_fp32(FlashBackward<float> tensors, AttentionSizes s) {
    constexpr int kRows = kSide * R, kQueries = kSide * C;
    float* const keys = dynamic_shared<float>();
    float* const values = keys + kRows * kPitch<D>;
    float* const queries = values + kRows * kPitch<D>;
    float* const gradients = queries + kQueries * kPitch<D>;
    float* const shares = gradients + kQueries * kPitch<D>;
    float* const gradient_shares = shares + kRows * kPitch<kQueries>;

    const int sequences = s.batch * s.kv_heads;
    const int first = static_cast<int>(blockIdx.x) / sequences * kRows;
    const int b = static_cast<int>(blockIdx.x) % sequences / s.kv_heads;
    const int first_head = static_cast<int>(blockIdx.x) % sequences % s.kv_heads * s.group;
    const HeadOffsets at = offsets_of(s, b, first_head);

    float dk[R][D / kSide] = {}, dv[R][D / kSide] = {};
    fetch_tile<D, kRows>(keys, tensors.qkv + at.key, s.row, first, s);
    fetch_tile<D, kRows>(values, tensors.qkv + at.value, s.row, first, s);
    for (int head = 0; head < s.group; ++head) {
        const HeadOffsets from = offsets_of(s, b, first_head + head);
        for (int query = first / kQueries * kQueries; query < s.context; query += kQueries) {
            __syncthreads();  // all threads are done with the previous tile
            fetch_tile<D, kQueries>(queries, tensors.qkv + from.query, s.row, query, s);
            fetch_tile<D, kQueries>(gradients, tensors.dout + from.out, s.width, query, s);
            __syncthreads();
            float p[R][C], ds[R][C];  // transposed: rows are keys
            products<D, R, C>(p, keys, queries);
            products<D, R, C>(ds, values, gradients);
#pragma unroll
            for (int j = 0; j < C; ++j) {
                const int here = query + own_column() + kSide * j;
                const float lse = here < s.context ? tensors.lse[from.row + here] : 0.0f;
                const float delta = here < s.context ? tensors.delta[from.row + here] : 0.0f;
#pragma unroll
                for (int i = 0; i < R; ++i) {
                    const bool seen = first + own_row() + kSide * i <= here && here < s.context;
                    to_gradient(p[i][j], ds[i][j], seen, s.scale, lse, delta);
                }
            }
            put_shares<R, C>(shares, p);
            put_shares<R, C>(gradient_shares, ds);
            __syncwarp();
            add_products<D, R, C>(dv, shares, gradients);
            add_products<D, R, C>(dk, gradient_shares, queries);
        }
    }
    float ones[R], scales[R];
#pragma unroll
    for (int i = 0; i < R; ++i) {
        ones[i] = 1.0f;
        scales[i] = s.scale;
    }
    store_rows<D, R>(tensors.dqkv + at.key, dk, s.row, first, scales, s);
    store_rows<D, R>(tensors.dqkv + at.value, dv, s.row, first, ones, s);
}

// --- launches ---------------------------------------------------------------------------------------------

constexpr std::size_t tile_bytes(int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns + 4) * sizeof(float);
}

unsigned grid_of(const AttentionSizes& s, int heads, int rows) {
    return static_cast<unsigned>(std::int64_t{s.batch} * heads *
                                 ((std::int64_t{s.context} + rows - 1) / rows));
}

template <int D, int R, int C>
void forward(const FlashForward<float>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    constexpr int kRows = kSide * R, kKeys = kSide * C;
    launch(flash_forward_fp32<D, R, C>, dim3(grid_of(s, s.heads, kRows)), dim3(kThreads),
           tile_bytes(kRows + 2 * kKeys, D) + tile_bytes(kRows, kKeys), stream, tensors, s);
}

template <int D, int R, int C>
void backward(const FlashBackward<float>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    constexpr int kRows = kSide * R, kColumns = kSide * C;
    launch(flash_backward_queries_fp32<D, R, C>, dim3(grid_of(s, s.heads, kRows)), dim3(kThreads),
           tile_bytes(2 * kRows + 2 * kColumns, D) + tile_bytes(kRows, kColumns), stream, tensors, s);
    launch(flash_backward_keys_fp32<D, R, C>, dim3(grid_of(s, s.kv_heads, kRows)), dim3(kThreads),
           tile_bytes(2 * kRows + 2 * kColumns, D) + tile_bytes(2 * kRows, kColumns), stream, tensors, s);
}

}  // namespace
}  // namespace flash_fp32

// Tiles get smaller as heads get wider, so that shared memory holds at least two blocks.
void launch_flash(const FlashForward<float>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    if (s.d <= 16) return flash_fp32::forward<16, 4, 4>(tensors, s, stream);
    if (s.d <= 32) return flash_fp32::forward<32, 4, 4>(tensors, s, stream);
    if (s.d <= 64) return flash_fp32::forward<64, 4, 4>(tensors, s, stream);
    if (s.d <= 96) return flash_fp32::forward<96, 4, 2>(tensors, s, stream);
    if (s.d <= 128) return flash_fp32::forward<128, 4, 2>(tensors, s, stream);
    if (s.d <= 256) return flash_fp32::forward<256, 2, 1>(tensors, s, stream);
    throw std::logic_error("fused attention has heads of at most 256 features");
}

void launch_flash(const FlashBackward<float>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    if (s.d <= 16) return flash_fp32::backward<16, 2, 2>(tensors, s, stream);
    if (s.d <= 32) return flash_fp32::backward<32, 4, 2>(tensors, s, stream);
    if (s.d <= 64) return flash_fp32::backward<64, 4, 2>(tensors, s, stream);
    if (s.d <= 96) return flash_fp32::backward<96, 2, 2>(tensors, s, stream);
    if (s.d <= 128) return flash_fp32::backward<128, 2, 2>(tensors, s, stream);
    if (s.d <= 256) return flash_fp32::backward<256, 1, 1>(tensors, s, stream);
    throw std::logic_error("fused attention has heads of at most 256 features");
}

}  // namespace shardscope::trainer::cuda
