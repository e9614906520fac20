// Tiles of Bf16 or Fp16 (T) in shared memory and a warp's operations on them with tensor cores, for the fused
// attention's forward and backward. A tile has D columns, a multiple of 16; columns beyond the head's width
// and rows beyond the context are zeros. Rows are D + 8 elements apart, so that the 16-byte pieces of 8
// consecutive rows fall in different banks and load_tiles has no conflicts. Internal to trainer/cuda.
#pragma once

#include <cstddef>

#include "trainer/cuda/attention_shape.h"
#include "trainer/cuda/tensor_cores.h"

namespace shardscope::trainer::cuda::flash {

inline constexpr int kThreads = 128;
inline constexpr int kWarps = kThreads / 32;
inline constexpr float kLog2E = 1.4426950408889634f;

template <int D>
inline constexpr int kPitch = D + 8;  // elements from row to row

constexpr std::size_t tile_bytes(int rows, int d) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(d + 8) *
           sizeof(Bf16);  // Fp16 is as large
}

// All threads of the block copy rows [first, first + kRows) of a head's matrix, `stride` elements from row to
// row. If rows can be read in packs, the copies are asynchronous.
template <int D, int kRows, class T>
__device__ inline void fetch_tile(T* tile, const T* from, std::int64_t stride, int first,
                                  const AttentionSizes& s) {
    constexpr int kPieces = D / 8;  // of 16 bytes in a row
    static_assert(kRows * kPieces % kThreads == 0 || kPieces < 16);
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kPieces; i += kThreads) {
        const int r = i / kPieces, column = i % kPieces * 8, row = first + r;
        T* to = tile + r * kPitch<D> + column;
        const bool there = row < s.context && column < s.d;
        const T* source = from + (there ? row * stride + column : 0);
        if (s.packed) {
            copy_later(to, source, there);
        } else {
            for (int e = 0; e < 8; ++e) to[e] = there && column + e < s.d ? source[e] : T{0};
        }
    }
}

// Begins to fetch the tile after `tile`, if there is one, and waits until the whole block has `tile`.
template <class Fetch>
__device__ inline void await_tile(int tile, int tiles, const Fetch& fetch) {
    if (tile + 1 < tiles) {
        fetch(tile + 1);
        wait_for_copies<1>();
    } else {
        wait_for_copies<0>();
    }
    __syncthreads();
}

// Copies rows of a tile, which only this warp uses, back to a head's matrix.
template <int D, int kRows, class T>
__device__ inline void store_tile(T* to, const T* tile, std::int64_t stride, int first,
                                  const AttentionSizes& s) {
    constexpr int kPieces = D / 8;
    for (int i = static_cast<int>(threadIdx.x % 32); i < kRows * kPieces; i += 32) {
        const int r = i / kPieces, column = i % kPieces * 8, row = first + r;
        if (row >= s.context || column >= s.d) continue;
        const T* from = tile + r * kPitch<D> + column;
        T* target = to + row * stride + column;
        if (s.packed) {
            store_pack(target, load_pack<8>(from));
        } else {
            for (int e = 0; e < 8 && column + e < s.d; ++e) target[e] = from[e];
        }
    }
}

// One lane's place in a tile (see tensor_cores.h).
struct Lane {
    int g, i;              // its place in the pieces of a matmul
    int straight, across;  // element offsets of the row that the lane addresses in a 16x16 block of a tile

    template <int D>
    __device__ static Lane of() {
        const int lane = static_cast<int>(threadIdx.x % 32);
        Lane l;
        l.g = lane / 4;
        l.i = lane % 4 * 2;
        // Tiles of a block in the order (rows 0-7, columns 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15): the
        // A operand as stored, or, transposed, two B operands of 16 rows and 8 columns.
        l.straight = (lane % 16) * kPitch<D> + lane / 16 * 8;
        // (0-7, 0-7), (0-7, 8-15), (8-15, 0-7), (8-15, 8-15): two B operands, each 8 rows of the tile as
        // columns.
        l.across = (lane % 8 + lane / 16 * 8) * kPitch<D> + lane / 8 % 2 * 8;
        return l;
    }
};

// The A operand of 16 rows and columns [16 k, 16 k + 16).
template <int D, class T>
__device__ inline void load_a(std::uint32_t (&a)[4], const T* rows, int k, const Lane& lane) {
    load_tiles(a, rows + 16 * k + lane.straight);
}
// B operands of a transposed tile, [16 columns of D] x [16 rows]: b[0], b[1] of rows 0-7, b[2], b[3] of 8-15.
template <int D, class T>
__device__ inline void load_b_transposed(std::uint32_t (&b)[4], const T* rows, int k, const Lane& lane) {
    load_tiles(b, rows + 16 * k + lane.across);
}
// B operands of a tile, [16 rows] x [16 columns of D]: b[0], b[1] of columns 0-7, b[2], b[3] of 8-15.
template <int D, class T>
__device__ inline void load_b(std::uint32_t (&b)[4], const T* rows, int k, const Lane& lane) {
    load_tiles_transposed(b, rows + 16 * k + lane.straight);
}

// Rounds two neighbouring C pieces, [16, 16], to an A operand.
template <class T>
__device__ inline void pack_a(std::uint32_t (&a)[4], const float (&left)[4], const float (&right)[4]) {
    a[0] = pack<T>(left[0], left[1]);
    a[1] = pack<T>(left[2], left[3]);
    a[2] = pack<T>(right[0], right[1]);
    a[3] = pack<T>(right[2], right[3]);
}

// Stores C pieces of 16 rows, scaled and rounded, in rows of a tile.
template <int D, class T>
__device__ inline void put_rows(T* rows, const float (&c)[D / 8][4], float upper, float lower,
                                const Lane& lane) {
    for (int n = 0; n < D / 8; ++n) {
        const std::uint32_t above = pack<T>(c[n][0] * upper, c[n][1] * upper);
        const std::uint32_t below = pack<T>(c[n][2] * lower, c[n][3] * lower);
        T* at = rows + lane.g * kPitch<D> + 8 * n + lane.i;
        std::memcpy(static_cast<void*>(at), &above, sizeof above);
        std::memcpy(static_cast<void*>(at + 8 * kPitch<D>), &below, sizeof below);
    }
}

// Loads the A operands of 16 kTiles rows into registers.
template <int D, int kTiles, class T>
__device__ __forceinline__ void hold(std::uint32_t (&held)[kTiles][D / 16][4], const T* rows,
                                     const Lane& lane) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int k = 0; k < D / 16; ++k) load_a<D>(held[t][k], rows + 16 * t * kPitch<D>, k, lane);
    }
}

// sums += a [16 kTiles, 16] x [16 rows of `right`], D columns.
template <int D, int kTiles, class T>
__device__ __forceinline__ void add_products(float (&sums)[kTiles][D / 8][4],
                                             const std::uint32_t (&a)[kTiles][4], const T* right,
                                             const Lane& lane) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        std::uint32_t b[4];
        load_b<D>(b, right, k, lane);
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            multiply_add<T>(sums[t][2 * k], a[t], b[0], b[1]);
            multiply_add<T>(sums[t][2 * k + 1], a[t], b[2], b[3]);
        }
    }
}

}  // namespace shardscope::trainer::cuda::flash
