// C[rows, columns] = left right^T, where `left` [rows, depth] and `right` [columns, depth] are not matrices
// in memory: an operand computes where the element of a row and a depth is. fp32 on ordinary arithmetic. A
// block of 256 threads makes a tile of C: the operands' next 16 of the depth are loaded into registers while
// those in shared memory, which has room for two, are multiplied. The depth may be split among blocks, whose
// tiles are then added in order, so that the bits do not depend on the device. A thread has at most 128
// registers and a block 33 KiB of shared memory, so that two blocks share a multiprocessor (as compiled by
// nvcc 13.0 for sm_90 one of the twelve kernels spills: the largest tile of the input's gradient, 112 bytes).
// Internal to trainer/cuda.
//
// An operand is a struct with
//   kAlongDepth               whether 4 elements of one row lie side by side in memory, or of 4 rows
//   packed                    whether those 4 can be read at once and exist together
//   Fixed fix(row)            what depends on the row alone
//   load(fixed, depth, v)     the 4 elements from a row and depth on, if packed
//   at(row, depth)            one element
// and the target, with its offset(row): where a row of C begins.
#pragma once

#include <algorithm>
#include <cstddef>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda::implicit {

inline constexpr int kThreads = 256;
inline constexpr int kSide = 16;   // threads along each side of a tile
inline constexpr int kDepth = 16;  // of a step
inline constexpr int kPack = 4;

template <class Left, class Right, class Target>
struct Product {
    Left left;
    Right right;
    Target target;
    int rows = 0, columns = 0, depth = 0;
    int of_split = 0;             // of the depth, a multiple of kDepth
    std::size_t elements = 0;     // from the C of a split to that of the next
    const float* bias = nullptr;  // added to every row; null for none
    bool packed = false;          // 4 columns of C can be written at once
};

// The elements of an operand that a thread brings to shared memory in each step.
template <int kRows, class Operand>
class Fetched {
  public:
    __device__ Fetched(const Operand& operand, int first, int rows)
        : operand_(operand), first_(first), rows_(rows) {
#pragma unroll
        for (int s = 0; s < kRowsOfThread; ++s) fixed_[s] = operand.fix(min(first + row_of(s), rows - 1));
    }
    __device__ void fetch(int depth, int end) {
#pragma unroll
        for (int s = 0; s < kSlots; ++s) {
            const int row = first_ + row_of(s), from = depth + depth_of(s);
#pragma unroll
            for (int e = 0; e < kPack; ++e) values_[s][e] = 0.0f;
            if (operand_.packed) {
                if (row < rows_ && from < end) operand_.load(fixed_[s % kRowsOfThread], from, values_[s]);
                continue;
            }
#pragma unroll
            for (int e = 0; e < kPack; ++e) {
                const int r = Operand::kAlongDepth ? row : row + e,
                          d = Operand::kAlongDepth ? from + e : from;
                if (r < rows_ && d < end) values_[s][e] = operand_.at(r, d);
            }
        }
    }
    __device__ void put(float (&tile)[kDepth][kRows + kPack]) const {
#pragma unroll
        for (int s = 0; s < kSlots; ++s) {
            if constexpr (Operand::kAlongDepth) {
#pragma unroll
                for (int e = 0; e < kPack; ++e) tile[depth_of(s) + e][row_of(s)] = values_[s][e];
            } else {
                store_floats(&tile[depth_of(s)][row_of(s)], values_[s]);
            }
        }
    }

  private:
    static constexpr int kSlots = kRows * kDepth / kPack / kThreads;
    static_assert(kSlots > 0 && kThreads % (kRows / kPack) == 0);
    // Of 4 rows side by side, all slots are at other depths.
    static constexpr int kRowsOfThread = Operand::kAlongDepth ? kSlots : 1;

    __device__ static int slot(int s) {
        return s * kThreads + static_cast<int>(threadIdx.x);
    }
    __device__ static int row_of(int s) {
        return Operand::kAlongDepth ? slot(s) / (kDepth / kPack) : slot(0) % (kRows / kPack) * kPack;
    }
    __device__ static int depth_of(int s) {
        return Operand::kAlongDepth ? slot(s) % (kDepth / kPack) * kPack : slot(s) / (kRows / kPack);
    }

    const Operand& operand_;
    int first_, rows_;
    typename Operand::Fixed fixed_[kRowsOfThread];
    float values_[kSlots][kPack];
};

template <int kRows, int kColumns>
struct alignas(16) Tiles {
    float left[2][kDepth][kRows + kPack], right[2][kDepth][kColumns + kPack];
};

// A thread owns 4 rows and columns of each 64 x 64 of the tile.
template <int kRows, int kColumns>
__device__ inline void add_step(float (&sums)[kRows / kSide][kColumns / kSide],
                                const float (&left)[kDepth][kRows + kPack],
                                const float (&right)[kDepth][kColumns + kPack], int down, int across) {
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
        float a[kRows / kSide], b[kColumns / kSide];
#pragma unroll
        for (int part = 0; part < kRows / kSide; part += kPack) {
            float four[kPack];
            load_floats(&left[d][part * kSide + down * kPack], four);
#pragma unroll
            for (int e = 0; e < kPack; ++e) a[part + e] = four[e];
        }
#pragma unroll
        for (int part = 0; part < kColumns / kSide; part += kPack) {
            float four[kPack];
            load_floats(&right[d][part * kSide + across * kPack], four);
#pragma unroll
            for (int e = 0; e < kPack; ++e) b[part + e] = four[e];
        }
#pragma unroll
        for (int i = 0; i < kRows / kSide; ++i) {
#pragma unroll
            for (int j = 0; j < kColumns / kSide; ++j) sums[i][j] += a[i] * b[j];
        }
    }
}

template <int kRows, int kColumns, class P>
__global__ void __launch_bounds__(kThreads, 2)
    // NOLINTNEXTLINE(clang-diagnostic-ignored-reference-qualifiers): nvcc requires const, of a value.
    implicit_gemm(const __grid_constant__ GridConstant<P> product, float* c, int tiles_across) {
    __shared__ Tiles<kRows, kColumns> tiles;
    const int first_row = static_cast<int>(blockIdx.x) / tiles_across * kRows;
    const int first_column = static_cast<int>(blockIdx.x) % tiles_across * kColumns;
    const int split = static_cast<int>(blockIdx.y);
    const int begin = split * product.of_split, end = min(begin + product.of_split, product.depth);
    const int down = static_cast<int>(threadIdx.x) / kSide, across = static_cast<int>(threadIdx.x) % kSide;
    Fetched<kRows, decltype(P::left)> left(product.left, first_row, product.rows);
    Fetched<kColumns, decltype(P::right)> right(product.right, first_column, product.columns);

    float sums[kRows / kSide][kColumns / kSide] = {};
    left.fetch(begin, end);
    right.fetch(begin, end);
    for (int depth = begin, stage = 0; depth < end; depth += kDepth, stage = 1 - stage) {
        left.put(tiles.left[stage]);
        right.put(tiles.right[stage]);
        __syncthreads();  // and nobody reads the other stage any more
        if (depth + kDepth < end) {
            left.fetch(depth + kDepth, end);
            right.fetch(depth + kDepth, end);
        }
        add_step<kRows, kColumns>(sums, tiles.left[stage], tiles.right[stage], down, across);
    }

    float* const target = c + static_cast<std::size_t>(split) * product.elements;
#pragma unroll
    for (int i = 0; i < kRows / kSide; ++i) {
        const int row = first_row + i / kPack * kPack * kSide + down * kPack + i % kPack;
        if (row >= product.rows) continue;
        float* const to = target + product.target.offset(row);
#pragma unroll
        for (int part = 0; part < kColumns / kSide; part += kPack) {
            const int column = first_column + part * kSide + across * kPack;
            float four[kPack];
#pragma unroll
            for (int e = 0; e < kPack; ++e) {
                const bool biased = product.bias && column + e < product.columns;
                four[e] = sums[i][part + e] + (biased ? product.bias[column + e] : 0.0f);
            }
            if (product.packed && column < product.columns) {
                store_floats(to + column, four);
                continue;
            }
#pragma unroll
            for (int e = 0; e < kPack; ++e) {
                if (column + e < product.columns) to[column + e] = four[e];
            }
        }
    }
}

// --- the host's side ---------------------------------------------------------------------------------------

inline int tile_of(int n) {
    return n > 64 ? 128 : 64;
}
inline int tiles_of(int n) {
    return (n + tile_of(n) - 1) / tile_of(n);
}

// The parts of the depth for a product of so many tiles: enough blocks for a large GPU, but none without work
// for some hundreds of steps of the depth. It depends on the shape only.
inline int splits_for(std::int64_t tiles, int depth) {
    constexpr std::int64_t kBlocks = 256;
    constexpr int kLeast = 256;
    const std::int64_t wanted = std::max<std::int64_t>(1, kBlocks / std::max<std::int64_t>(1, tiles));
    return static_cast<int>(std::clamp<std::int64_t>(depth / kLeast, 1, wanted));
}

// c receives the products of all splits, one after the other.
template <class P>
void multiply(P product, float* c, int splits, cudaStream_t stream) {
    if (product.rows == 0 || product.columns == 0) return;
    const int part = (product.depth + splits - 1) / splits;
    product.of_split = (part + kDepth - 1) / kDepth * kDepth;
    product.packed = product.columns % kPack == 0 && product.elements % kPack == 0 && is_aligned(c);
    const int across = tiles_of(product.columns);
    const dim3 grid(static_cast<unsigned>(tiles_of(product.rows)) * static_cast<unsigned>(across),
                    static_cast<unsigned>(splits));
    const auto kernel =
        tile_of(product.rows) == 128
            ? (tile_of(product.columns) == 128 ? &implicit_gemm<128, 128, P> : &implicit_gemm<128, 64, P>)
            : (tile_of(product.columns) == 128 ? &implicit_gemm<64, 128, P> : &implicit_gemm<64, 64, P>);
    launch(kernel, grid, kThreads, 0, stream, product, c, across);
}

}  // namespace shardscope::trainer::cuda::implicit
