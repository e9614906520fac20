// Fused attention's forward on tensor cores; see flash.h. A block of 4 warps owns 64 * kTiles queries of one
// head, kTiles times 16 per warp, and loops over the keys up to its last query: the next tile of keys and
// values is copied to shared memory while this one is processed. Scores, probabilities and the output stay in
// registers. Resources of a block, as compiled by nvcc 13.0 (nothing is spilled):
//   head width            16   32   64   96  128  256
//   registers, sm_90     147  175  251  218  167  226
//   shared memory, KiB    18   30   54   52   51   99
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "trainer/cuda/flash.h"
#include "trainer/cuda/flash_tiles.h"

namespace shardscope::trainer::cuda {
namespace flash {
namespace {

// The largest score (unscaled) and the sum of e^(scale (score - largest)) of the rows of a lane, g and g + 8
// of each tile.
template <int kTiles>
struct Running {
    float largest[kTiles][2];
    float sum[kTiles][2];  // of this lane's columns only
};

// Scores become e^(scale (score - largest so far)); out and sums are rescaled to the new largest. `masked`:
// some rows must not see some of the columns [column, …).
template <int D, int kTiles, int kKeys>
__device__ __forceinline__ void take_scores(float (&scores)[kTiles][kKeys / 8][4],
                                            float (&out)[kTiles][D / 8][4], Running<kTiles>& running, int row,
                                            int column, bool masked, const AttentionSizes& s,
                                            const Lane& lane) {
    const float scale = s.scale * kLog2E;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int here = row + 16 * t + 8 * half + lane.g;
            float largest = -INFINITY;
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& score = scores[t][n][2 * half + e];
                    if (masked && column + 8 * n + lane.i + e > here) score = -INFINITY;
                    largest = fmaxf(largest, score);
                }
            }
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
            const float before = running.largest[t][half];
            largest = fmaxf(largest, before);
            running.largest[t][half] = largest;
            // 0 for the first tile, whose `before` is -infinity.
            const float keep = power_of_two((before - largest) * scale);
            const float offset = largest * scale;
            float sum = 0.0f;
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& score = scores[t][n][2 * half + e];
                    score = power_of_two(fmaf(score, scale, -offset));
                    sum += score;
                }
            }
            running.sum[t][half] = running.sum[t][half] * keep + sum;
            // Most tiles raise no maximum, so nothing has to be rescaled.
            if (__any_sync(0xffffffffu, keep != 1.0f)) {
#pragma unroll
                for (int n = 0; n < D / 8; ++n) {
                    out[t][n][2 * half] *= keep;
                    out[t][n][2 * half + 1] *= keep;
                }
            }
        }
    }
}

template <class T, int D, int kTiles, int kKeys>
__global__ void __launch_bounds__(kThreads) flash_forward(FlashForward<T> tensors, AttentionSizes s) {
    constexpr int kRows = 16 * kTiles * kWarps;
    constexpr bool kHoldQueries = kTiles * D <= 128;  // in registers: D / 4 * kTiles of them
    constexpr int kHeld = kHoldQueries ? D / 16 : 1;
    T* const queries = dynamic_shared<T>();
    T* const keys = queries + kRows * kPitch<D>;     // two tiles
    T* const values = keys + 2 * kKeys * kPitch<D>;  // two tiles

    // The longest loops come first.
    const int sequences = s.batch * s.heads;
    const int blocks = (s.context + kRows - 1) / kRows;
    const int first = (blocks - 1 - static_cast<int>(blockIdx.x) / sequences) * kRows;
    const int sequence = static_cast<int>(blockIdx.x) % sequences;
    const HeadOffsets at = offsets_of(s, sequence / s.heads, sequence % s.heads);
    const int warp_row = static_cast<int>(threadIdx.x / 32) * 16 * kTiles;
    const int row = first + warp_row;  // the warp's first
    const int tiles = (min(s.context, first + kRows) + kKeys - 1) / kKeys;
    const Lane lane = Lane::of<D>();
    T* const own = queries + warp_row * kPitch<D>;

    const auto fetch = [&](int tile) {
        const int stage = tile % 2 * kKeys * kPitch<D>;
        fetch_tile<D, kKeys>(keys + stage, tensors.qkv + at.key, s.row, tile * kKeys, s);
        fetch_tile<D, kKeys>(values + stage, tensors.qkv + at.value, s.row, tile * kKeys, s);
        end_copies();
    };

    float out[kTiles][D / 8][4] = {};
    Running<kTiles> running;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        running.largest[t][0] = running.largest[t][1] = -INFINITY;
        running.sum[t][0] = running.sum[t][1] = 0.0f;
    }
    std::uint32_t held[kTiles][kHeld][4];

    fetch_tile<D, kRows>(queries, tensors.qkv + at.query, s.row, first, s);
    fetch(0);
    for (int tile = 0; tile < tiles; ++tile) {
        await_tile(tile, tiles, fetch);
        const int column = tile * kKeys;
        const T* const tile_keys = keys + tile % 2 * kKeys * kPitch<D>;
        const T* const tile_values = values + tile % 2 * kKeys * kPitch<D>;
        if constexpr (kHoldQueries) {
            if (tile == 0) hold<D, kTiles>(held, own, lane);
        }
        if (column <= row + 16 * kTiles - 1) {  // else none of the warp's rows sees a key of this tile
            float scores[kTiles][kKeys / 8][4] = {};
#pragma unroll
            for (int k = 0; k < D / 16; ++k) {
                std::uint32_t a[kTiles][4];
#pragma unroll
                for (int t = 0; t < kTiles; ++t) {
                    if constexpr (!kHoldQueries) load_a<D>(a[t], own + 16 * t * kPitch<D>, k, lane);
                }
#pragma unroll
                for (int n = 0; n < kKeys / 16; ++n) {
                    std::uint32_t b[4];
                    load_b_transposed<D>(b, tile_keys + 16 * n * kPitch<D>, k, lane);
#pragma unroll
                    for (int t = 0; t < kTiles; ++t) {
                        const std::uint32_t(&query)[4] = kHoldQueries ? held[t][kHoldQueries ? k : 0] : a[t];
                        multiply_add<T>(scores[t][2 * n], query, b[0], b[1]);
                        multiply_add<T>(scores[t][2 * n + 1], query, b[2], b[3]);
                    }
                }
            }
            take_scores<D, kTiles, kKeys>(scores, out, running, row, column, column + kKeys - 1 > row, s,
                                          lane);
#pragma unroll
            for (int n = 0; n < kKeys / 16; ++n) {
                std::uint32_t p[kTiles][4];
#pragma unroll
                for (int t = 0; t < kTiles; ++t) pack_a<T>(p[t], scores[t][2 * n], scores[t][2 * n + 1]);
                add_products<D, kTiles>(out, p, tile_values + 16 * n * kPitch<D>, lane);
            }
        }
        __syncthreads();  // before the tile after the next overwrites this one
    }

#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        float inverse[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float sum = running.sum[t][half];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            inverse[half] = 1.0f / sum;
            const int here = row + 16 * t + 8 * half + lane.g;
            if (lane.i == 0 && here < s.context) {
                tensors.lse[at.row + here] = running.largest[t][half] * s.scale + logf(sum);
            }
        }
        put_rows<D>(own + 16 * t * kPitch<D>, out[t], inverse[0], inverse[1], lane);
    }
    __syncwarp();
    store_tile<D, 16 * kTiles>(tensors.out + at.out, own, s.width, row, s);
}

template <int D, int kTiles, int kKeys, class T>
void forward(const FlashForward<T>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    constexpr int kRows = 16 * kTiles * kWarps;
    const std::int64_t blocks =
        std::int64_t{s.batch} * s.heads * ((std::int64_t{s.context} + kRows - 1) / kRows);
    launch(flash_forward<T, D, kTiles, kKeys>, dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
           tile_bytes(kRows + 4 * kKeys, D), stream, tensors, s);
}

}  // namespace
}  // namespace flash

template <class T>
void launch_flash(const FlashForward<T>& tensors, const AttentionSizes& s, cudaStream_t stream) {
    if (s.d <= 16) return flash::forward<16, 2, 64>(tensors, s, stream);
    if (s.d <= 32) return flash::forward<32, 2, 64>(tensors, s, stream);
    if (s.d <= 64) return flash::forward<64, 2, 64>(tensors, s, stream);
    if (s.d <= 96) return flash::forward<96, 2, 32>(tensors, s, stream);
    if (s.d <= 128) return flash::forward<128, 1, 32>(tensors, s, stream);
    if (s.d <= 256) return flash::forward<256, 1, 32>(tensors, s, stream);
    throw std::logic_error("fused attention has heads of at most 256 features");
}

template void launch_flash(const FlashForward<Bf16>&, const AttentionSizes&, cudaStream_t);
template void launch_flash(const FlashForward<Fp16>&, const AttentionSizes&, cudaStream_t);

}  // namespace shardscope::trainer::cuda
