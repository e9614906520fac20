// Sums of the columns of a row-major matrix, and how blocks share such a matrix. A block has a slice of the
// rows and a tile of the columns; its threads lie side by side over the columns, 4 each, as far as there are
// columns, and the others below them. A thread adds its rows in fp32; the slices are added in fp64. Device
// code; the host chooses the slices.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "trainer/cuda/device.h"
#include "trainer/cuda/rows.h"

namespace shardscope::trainer::cuda::by_column {

inline constexpr int kThreads = 256, kPack = 4;
inline constexpr int kWarps = kThreads / kWarpLanes;

// How a matrix is cut; `aligned`: its memory is. The rows of a slice depend only on the shape.
struct Cut {
    int rows, columns;
    int across, down;  // threads of a block
    int slice_rows, slices, tiles;
    bool packed;  // 4 columns can be moved at once

    Cut(int of_rows, int of_columns, bool aligned)
        : rows(of_rows), columns(of_columns), packed(aligned && of_columns % kPack == 0) {
        constexpr int kSlices = 128;           // the intended number of slices
        constexpr int kLeast = 4, kMost = 64;  // rows of a thread, which are summed in fp32
        const int packs = (columns + kPack - 1) / kPack;
        across =
            static_cast<int>(std::min<unsigned>(kWarpLanes, std::bit_ceil(static_cast<unsigned>(packs))));
        down = kThreads / across;
        slice_rows = std::clamp((rows + kSlices - 1) / kSlices, kLeast * down, kMost * down);
        slices = (rows + slice_rows - 1) / slice_rows;
        tiles = (packs + across - 1) / across;
    }
    unsigned blocks() const { return static_cast<unsigned>(tiles) * static_cast<unsigned>(slices); }
};

// A thread's columns and rows.
struct Share {
    int slice, column, row, end;

    __device__ explicit Share(const Cut& cut) {
        const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
        slice = block % cut.slices;
        column = (block / cut.slices * cut.across + thread % cut.across) * kPack;
        row = slice * cut.slice_rows + thread / cut.across;
        end = min((slice + 1) * cut.slice_rows, cut.rows);
        if (column >= cut.columns) end = row;
    }
};

using Four = float[kPack];

// The elements of a row; `columns` are numbers of each column.
template <class T>
__device__ inline void load(const T* from, int row, int column, const Cut& cut, Four& values) {
    load_part(from + static_cast<std::size_t>(row) * static_cast<std::size_t>(cut.columns), column,
              cut.columns, cut.packed, values);
}
__device__ inline void load_columns(const float* from, int column, const Cut& cut, Four& values) {
    load_part(from, column, cut.columns, false, values);
}

// --- sums of columns ---------------------------------------------------------------------------------------

// parts [kSums, slices, columns].
template <class Terms>
__global__ void __launch_bounds__(kThreads) slice_sums(Terms terms, float* parts, Cut cut) {
    constexpr int kSums = Terms::kSums;
    const Share share(cut);
    float sums[kSums][kPack] = {};
    const auto own = terms.of_columns(share.column, cut);
#pragma unroll 4
    for (int row = share.row; row < share.end; row += cut.down) own.add(row, share.column, cut, sums);
    __shared__ float shared[kSums][kThreads][kPack];  // [down][across]
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) shared[s][threadIdx.x][i] = sums[s][i];
    }
    __syncthreads();
    const int thread = static_cast<int>(threadIdx.x), lane = thread / kPack;
    const int column =
        (static_cast<int>(blockIdx.x) / cut.slices * cut.across + lane) * kPack + thread % kPack;
    if (lane >= cut.across || column >= cut.columns) return;
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
        float sum = 0.0f;
        for (int d = 0; d < cut.down; ++d) sum += shared[s][d * cut.across + lane][thread % kPack];
        parts[(static_cast<std::size_t>(s) * cut.slices + share.slice) *
                  static_cast<std::size_t>(cut.columns) +
              column] = sum;
    }
}

// The sums of the slices of 32 columns, each of whose warps adds every eighth slice, to finish(column, sums).
template <int kSums, class Finish>
__global__ void __launch_bounds__(kThreads)
    column_sums(const float* parts, Finish finish, int columns, int slices) {
    __shared__ double shared[kSums][kWarps][kWarpLanes];
    const int lane = static_cast<int>(threadIdx.x) % kWarpLanes,
              warp = static_cast<int>(threadIdx.x) / kWarpLanes;
    const int column = static_cast<int>(blockIdx.x) * kWarpLanes + lane;
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
        double sum = 0.0;
        if (column < columns) {
#pragma unroll 4
            for (int slice = warp; slice < slices; slice += kWarps) {
                sum +=
                    parts[(static_cast<std::size_t>(s) * slices + slice) * static_cast<std::size_t>(columns) +
                          column];
            }
        }
        shared[s][warp][lane] = sum;
    }
    __syncthreads();
    if (warp != 0 || column >= columns) return;
    double sums[kSums];
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
        sums[s] = 0.0;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) sums[s] += shared[s][w][lane];
    }
    finish(column, sums);
}

// The elements of `parts`.
inline std::size_t parts_of(const Cut& cut, int sums) {
    return static_cast<std::size_t>(sums) * static_cast<std::size_t>(cut.slices) *
           static_cast<std::size_t>(cut.columns);
}

// parts: as slice_sums writes them.
template <int kSums, class Finish>
void sum_slices(const DeviceContext& device, const float* parts, const Finish& finish, int columns,
                int slices) {
    launch(&column_sums<kSums, Finish>, blocks_for(static_cast<std::size_t>(columns), kWarpLanes), kThreads,
           0, device.stream, parts, finish, columns, slices);
}

// Terms: of_columns() gives what add()s the terms of a row to a thread's sums; Finish: what becomes of a
// column's sums.
template <class Terms, class Finish>
void sum_columns(const DeviceContext& device, const Terms& terms, float* parts, const Cut& cut,
                 const Finish& finish) {
    launch(&slice_sums<Terms>, cut.blocks(), kThreads, 0, device.stream, terms, parts, cut);
    sum_slices<Terms::kSums>(device, parts, finish, cut.columns, cut.slices);
}

// The elements themselves.
template <class T>
struct Values {
    static constexpr int kSums = 1;
    const T* x;

    __device__ Values of_columns(int, const Cut&) const { return *this; }
    __device__ void add(int row, int column, const Cut& cut, float (&sums)[1][kPack]) const {
        Four in;
        load(x, row, column, cut, in);
#pragma unroll
        for (int i = 0; i < kPack; ++i) sums[0][i] += in[i];
    }
};

// Keeps each sum in an array of its own, as an element of T.
template <class T, int kSums>
struct RoundedSums {
    T* results[kSums];
    __device__ void operator()(int column, const double (&sums)[kSums]) const {
#pragma unroll
        for (int s = 0; s < kSums; ++s) results[s][column] = rounded<T>(static_cast<float>(sums[s]));
    }
};

}  // namespace shardscope::trainer::cuda::by_column
