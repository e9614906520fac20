// Fused attention's backward on tensor cores; see flash.h. With p = e^(scale s - lse), dp = dout vᵀ and ds =
// p (dp - delta): dq = scale ds k, dk = scale dsᵀ q, dv = pᵀ dout. As lse is known, no running maximum is
// needed and 16 columns at a time are enough: a warp computes them, rounds them and feeds them to the next
// matmul in its registers. The kernel over keys computes the tiles transposed (k qᵀ and v
// doutᵀ), so that pᵀ and dsᵀ have the layout of A operands for the matmuls that follow. Resources of a block,
// as compiled by nvcc 13.0 (nothing is spilled):
//   head width                          16   32   64   96  128  256
//   registers of dq, sm_90              58   78  222  158  205  225
//   registers of dk and dv, sm_90       72   80  248  168  242  236 and 164 (one after the other)
//   shared memory, KiB                  18   30   72   52   68  132, and up to 1 for lse and delta of keys
#include <algorithm>
#include <stdexcept>

#include "trainer/cuda/flash.h"
#include "trainer/cuda/flash_tiles.h"

namespace shardscope::trainer::cuda {
namespace flash {
namespace {

// [16 kTiles rows of `left`] x [16 rows of `right`]ᵀ, over D: two pieces of 8 columns for each 16 rows.
template <int D, int kTiles, class T>
__device__ __forceinline__ void products(float (&c)[kTiles][2][4], const T* left, const T* right,
                                         const Lane& lane) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        std::uint32_t b[4];
        load_b_transposed<D>(b, right, k, lane);
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            std::uint32_t a[4];
            load_a<D>(a, left + 16 * t * kPitch<D>, k, lane);
            multiply_add<T>(c[t][0], a, b[0], b[1]);
            multiply_add<T>(c[t][1], a, b[2], b[3]);
        }
    }
}

// The same with A operands that are in registers.
template <int D, int kTiles, class T>
__device__ __forceinline__ void products(float (&c)[kTiles][2][4],
                                         const std::uint32_t (&left)[kTiles][D / 16][4], const T* right,
                                         const Lane& lane) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        std::uint32_t b[4];
        load_b_transposed<D>(b, right, k, lane);
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            multiply_add<T>(c[t][0], left[t][k], b[0], b[1]);
            multiply_add<T>(c[t][1], left[t][k], b[2], b[3]);
        }
    }
}

// --- dq: a block owns 64 kTiles queries ------------------------------------------------------------------

template <class T, int D, int kTiles, int kKeys>
__global__ void __launch_bounds__(kThreads)
    flash_backward_queries(FlashBackward<T> tensors, AttentionSizes s) {
    constexpr int kRows = 16 * kTiles * kWarps;
    constexpr int kTile = kKeys * kPitch<D>;
    T* const queries = dynamic_shared<T>();
    T* const gradients = queries + kRows * kPitch<D>;  // of the output
    T* const keys = gradients + kRows * kPitch<D>;     // two tiles
    T* const values = keys + 2 * kTile;                // two tiles

    // The longest loops come first.
    const int sequences = s.batch * s.heads;
    const int blocks = (s.context + kRows - 1) / kRows;
    const int first = (blocks - 1 - static_cast<int>(blockIdx.x) / sequences) * kRows;
    const int sequence = static_cast<int>(blockIdx.x) % sequences;
    const HeadOffsets at = offsets_of(s, sequence / s.heads, sequence % s.heads);
    const int warp_row = static_cast<int>(threadIdx.x / 32) * 16 * kTiles;
    const int row = first + warp_row;  // the warp's first
    const int last = min(s.context, row + 16 * kTiles) - 1;
    const int tiles = (min(s.context, first + kRows) + kKeys - 1) / kKeys;
    const float scale = s.scale * kLog2E;
    const Lane lane = Lane::of<D>();
    T* const own_queries = queries + warp_row * kPitch<D>;
    const T* const own_gradients = gradients + warp_row * kPitch<D>;

    const auto fetch = [&](int tile) {
        fetch_tile<D, kKeys>(keys + tile % 2 * kTile, tensors.qkv + at.key, s.row, tile * kKeys, s);
        fetch_tile<D, kKeys>(values + tile % 2 * kTile, tensors.qkv + at.value, s.row, tile * kKeys, s);
        end_copies();
    };
    fetch_tile<D, kRows>(queries, tensors.qkv + at.query, s.row, first, s);
    fetch_tile<D, kRows>(gradients, tensors.dout + at.out, s.width, first, s);
    fetch(0);

    float lse[kTiles][2], delta[kTiles][2];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int here = row + 16 * t + 8 * half + lane.g;
            lse[t][half] = here < s.context ? tensors.lse[at.row + here] * kLog2E : 0.0f;
            delta[t][half] = here < s.context ? tensors.delta[at.row + here] : 0.0f;
        }
    }

    // The block's own operands stay in registers if there are enough registers.
    constexpr bool kHolds = kTiles * D <= 128;
    std::uint32_t held_queries[kTiles][kHolds ? D / 16 : 1][4];
    std::uint32_t held_gradients[kTiles][kHolds ? D / 16 : 1][4];
    float sums[kTiles][D / 8][4] = {};
    for (int tile = 0; tile < tiles; ++tile) {
        await_tile(tile, tiles, fetch);
        if constexpr (kHolds) {
            if (tile == 0) {
                hold<D, kTiles>(held_queries, own_queries, lane);
                hold<D, kTiles>(held_gradients, own_gradients, lane);
            }
        }
        for (int piece = 0; piece < kKeys; piece += 16) {
            const int column = tile * kKeys + piece;
            if (column > last) break;  // none of the warp's rows sees this column or a later one
            const T* const piece_keys = keys + tile % 2 * kTile + piece * kPitch<D>;
            const T* const piece_values = values + tile % 2 * kTile + piece * kPitch<D>;
            float p[kTiles][2][4] = {}, ds[kTiles][2][4] = {};
            if constexpr (kHolds) {
                products<D, kTiles>(p, held_queries, piece_keys, lane);
                products<D, kTiles>(ds, held_gradients, piece_values, lane);
            } else {
                products<D, kTiles>(p, own_queries, piece_keys, lane);
                products<D, kTiles>(ds, own_gradients, piece_values, lane);
            }
            std::uint32_t a[kTiles][4];
#pragma unroll
            for (int t = 0; t < kTiles; ++t) {
#pragma unroll
                for (int n = 0; n < 2; ++n) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const bool seen =
                            column + 8 * n + lane.i + e % 2 <= row + 16 * t + e / 2 * 8 + lane.g;
                        const float share = power_of_two(fmaf(p[t][n][e], scale, -lse[t][e / 2]));
                        ds[t][n][e] = seen ? share * (ds[t][n][e] - delta[t][e / 2]) : 0.0f;
                    }
                }
                pack_a<T>(a[t], ds[t][0], ds[t][1]);
            }
            add_products<D, kTiles>(sums, a, piece_keys, lane);
        }
        __syncthreads();  // before the tile after the next overwrites this one
    }

#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        put_rows<D>(own_queries + 16 * t * kPitch<D>, sums[t], s.scale, s.scale, lane);
    }
    __syncwarp();
    store_tile<D, 16 * kTiles>(tensors.dqkv + at.query, own_queries, s.row, row, s);
}

// --- dk and dv: a block owns 64 kTiles keys ---------------------------------------------------------------

// Which gradients a launch computes: both, or only one if registers cannot hold the sums of both.
enum class Wanted { both, keys, values };

template <class T, int D, int kTiles, int kQueries, Wanted kWanted>
__global__ void __launch_bounds__(kThreads) flash_backward_keys(FlashBackward<T> tensors, AttentionSizes s) {
    constexpr bool kMakesKeys = kWanted != Wanted::values;
    constexpr bool kMakesValues = kWanted != Wanted::keys;
    constexpr int kRows = 16 * kTiles * kWarps;
    constexpr int kTile = kQueries * kPitch<D>;
    T* const keys = dynamic_shared<T>();
    T* const values = keys + kRows * kPitch<D>;
    T* const queries = values + kRows * kPitch<D>;                        // two tiles
    T* const gradients = queries + 2 * kTile;                             // two tiles, of the output
    float* const lses = reinterpret_cast<float*>(gradients + 2 * kTile);  // two tiles' rows
    float* const deltas = lses + 2 * kQueries;

    // The longest loops come first: the first keys are seen by the most queries.
    const int sequences = s.batch * s.kv_heads;
    const int first = static_cast<int>(blockIdx.x) / sequences * kRows;
    const int b = static_cast<int>(blockIdx.x) % sequences / s.kv_heads;
    const int first_head = static_cast<int>(blockIdx.x) % sequences % s.kv_heads * s.group;
    const HeadOffsets at = offsets_of(s, b, first_head);
    const int warp_row = static_cast<int>(threadIdx.x / 32) * 16 * kTiles;
    const int row = first + warp_row;  // the warp's first
    const int begin = first / kQueries;
    const int tiles_of_head = (s.context + kQueries - 1) / kQueries - begin;
    const int tiles = tiles_of_head * s.group;
    const float scale = s.scale * kLog2E;
    const Lane lane = Lane::of<D>();
    T* const own_keys = keys + warp_row * kPitch<D>;
    T* const own_values = values + warp_row * kPitch<D>;

    // The queries of all heads of the group, head by head.
    const auto fetch = [&](int tile) {
        const int head = tile / tiles_of_head;
        const int query = (begin + tile % tiles_of_head) * kQueries;
        const HeadOffsets from = offsets_of(s, b, first_head + head);
        const int stage = tile % 2;
        fetch_tile<D, kQueries>(queries + stage * kTile, tensors.qkv + from.query, s.row, query, s);
        fetch_tile<D, kQueries>(gradients + stage * kTile, tensors.dout + from.out, s.width, query, s);
        end_copies();
        for (int i = static_cast<int>(threadIdx.x); i < kQueries; i += kThreads) {
            const bool there = query + i < s.context;
            lses[stage * kQueries + i] = there ? tensors.lse[from.row + query + i] * kLog2E : 0.0f;
            deltas[stage * kQueries + i] = there ? tensors.delta[from.row + query + i] : 0.0f;
        }
    };
    fetch_tile<D, kRows>(keys, tensors.qkv + at.key, s.row, first, s);
    fetch_tile<D, kRows>(values, tensors.qkv + at.value, s.row, first, s);
    fetch(0);

    float dk[kTiles][kMakesKeys ? D / 8 : 1][4] = {}, dv[kTiles][kMakesValues ? D / 8 : 1][4] = {};
    for (int tile = 0; tile < tiles; ++tile) {
        await_tile(tile, tiles, fetch);
        const int stage = tile % 2;
        for (int piece = 0; piece < kQueries; piece += 16) {
            const int query = (begin + tile % tiles_of_head) * kQueries + piece;
            if (query + 15 < row || query >= s.context) continue;  // no query sees the warp's keys
            const T* const piece_queries = queries + stage * kTile + piece * kPitch<D>;
            const T* const piece_gradients = gradients + stage * kTile + piece * kPitch<D>;
            float p[kTiles][2][4] = {}, ds[kTiles][2][4] = {};
            products<D, kTiles>(p, own_keys, piece_queries, lane);
            if constexpr (kMakesKeys) products<D, kTiles>(ds, own_values, piece_gradients, lane);
            std::uint32_t a[kTiles][4], da[kTiles][4];
#pragma unroll
            for (int n = 0; n < 2; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {  // a column: a query
                    const int place = piece + 8 * n + lane.i + e;
                    const int here = query + 8 * n + lane.i + e;
                    const float lse = lses[stage * kQueries + place];
                    const float delta = deltas[stage * kQueries + place];
#pragma unroll
                    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
                        for (int half = 0; half < 2; ++half) {
                            const int key = row + 16 * t + 8 * half + lane.g;
                            const bool seen = key <= here && here < s.context;
                            float& share = p[t][n][2 * half + e];
                            float& gradient = ds[t][n][2 * half + e];
                            share = seen ? power_of_two(fmaf(share, scale, -lse)) : 0.0f;
                            gradient = seen ? share * (gradient - delta) : 0.0f;
                        }
                    }
                }
            }
#pragma unroll
            for (int t = 0; t < kTiles; ++t) {
                pack_a<T>(a[t], p[t][0], p[t][1]);
                pack_a<T>(da[t], ds[t][0], ds[t][1]);
            }
            if constexpr (kMakesValues) add_products<D, kTiles>(dv, a, piece_gradients, lane);
            if constexpr (kMakesKeys) add_products<D, kTiles>(dk, da, piece_queries, lane);
        }
        __syncthreads();  // before the tile after the next overwrites this one
    }

#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        if constexpr (kMakesKeys) put_rows<D>(own_keys + 16 * t * kPitch<D>, dk[t], s.scale, s.scale, lane);
        if constexpr (kMakesValues) put_rows<D>(own_values + 16 * t * kPitch<D>, dv[t], 1.0f, 1.0f, lane);
    }
    __syncwarp();
    if constexpr (kMakesKeys) store_tile<D, 16 * kTiles>(tensors.dqkv + at.key, own_keys, s.row, row, s);
    if constexpr (kMakesValues)
        store_tile<D, 16 * kTiles>(tensors.dqkv + at.value, own_values, s.row, row, s);
}

// --- launches ---------------------------------------------------------------------------------------------

unsigned grid_of(const AttentionSizes& s, int heads, int rows) {
    return static_cast<unsigned>(std::int64_t{s.batch} * heads *
                                 ((std::int64_t{s.context} + rows - 1) / rows));
}

template <int D, int kTiles, int kKeys, class T>
void backward_queries(const FlashBackward<T>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    constexpr int kRows = 16 * kTiles * kWarps;
    launch(flash_backward_queries<T, D, kTiles, kKeys>, dim3(grid_of(s, s.heads, kRows)), dim3(kThreads),
           tile_bytes(2 * kRows + 4 * kKeys, D), stream, tensors, s);
}

template <int D, int kTiles, int kQueries, Wanted kWanted = Wanted::both, class T>
void backward_keys(const FlashBackward<T>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    constexpr int kRows = 16 * kTiles * kWarps;
    launch(flash_backward_keys<T, D, kTiles, kQueries, kWanted>, dim3(grid_of(s, s.kv_heads, kRows)),
           dim3(kThreads), tile_bytes(2 * kRows + 4 * kQueries, D) + 4 * kQueries * sizeof(float), stream,
           tensors, s);
}

template <int D, int kTiles, int kColumns, class T>
void backward(const FlashBackward<T>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    backward_queries<D, kTiles, kColumns>(tensors, s, stream);
    backward_keys<D, kTiles, kColumns>(tensors, s, stream);
}

}  // namespace
}  // namespace flash

template <class T>
void launch_flash(const FlashBackward<T>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    using flash::Wanted;
    if (s.d <= 16) return flash::backward<16, 1, 64>(tensors, s, stream);
    if (s.d <= 32) return flash::backward<32, 1, 64>(tensors, s, stream);
    if (s.d <= 64) return flash::backward<64, 2, 64>(tensors, s, stream);
    if (s.d <= 96) return flash::backward<96, 1, 32>(tensors, s, stream);
    if (s.d <= 128) return flash::backward<128, 1, 32>(tensors, s, stream);
    if (s.d <= 256) {
        flash::backward_queries<256, 1, 32>(tensors, s, stream);
        flash::backward_keys<256, 1, 32, Wanted::keys>(tensors, s, stream);
        flash::backward_keys<256, 1, 32, Wanted::values>(tensors, s, stream);
        return;
    }
    throw std::logic_error("fused attention has heads of at most 256 features");
}

template void launch_flash(const FlashBackward<Bf16>&, const AttentionSizes&, cudaStream_t);
template void launch_flash(const FlashBackward<Fp16>&, const AttentionSizes&, cudaStream_t);

}  // namespace shardscope::trainer::cuda
