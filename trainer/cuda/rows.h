// How a block shares a row: thread t takes packs t, t + threads, … of it. Rows of up to kRowThreads * kHeld
// packs are kept in registers between passes (read once); longer ones are read again by each pass, from the
// cache if they fit. Device code; the host chooses the threads.
#pragma once

#include <algorithm>
#include <cstddef>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

inline constexpr int kRowThreads = 512;
inline constexpr int kHeld = 4;  // packs that a thread keeps in registers

// Calls f(k, first) for each of the thread's packs: the k-th begins at element `first` < n. kPacks 0 means
// any number of packs, with k always 0.
template <int kPacks, int kCount, class F>
__device__ inline void each_pack(int n, F f) {
    if constexpr (kPacks > 0) {
#pragma unroll
        for (int k = 0; k < kPacks; ++k) {
            const int first = (k * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kCount;
            if (first < n) f(k, first);
        }
    } else {
        const int stride = static_cast<int>(blockDim.x) * kCount;
        for (int first = static_cast<int>(threadIdx.x) * kCount; first < n; first += stride) f(0, first);
    }
}

// Elements [first, first + kCount) of a row of n as floats, zeros beyond its end. packed: all rows are
// aligned for packs and whole packs long.
template <int kCount, class T>
__device__ inline void load_part(const T* row, int first, int n, bool packed, float (&values)[kCount]) {
    if (packed) return load_floats(row + first, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = first + i < n ? to_float(row[first + i]) : 0.0f;
}
template <int kCount, class T>
__device__ inline void store_part(T* row, int first, int n, bool packed, const float (&values)[kCount]) {
    if (packed) return store_floats(row + first, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        if (first + i < n) row[first + i] = rounded<T>(values[i]);
    }
}

// A row in registers, or in memory if kPacks is 0.
template <class T, int kPacks>
class Row {
  public:
    static constexpr int kCount = kPackOf<T>;

    __device__ Row(const T* data, int n, bool packed) : data_(data), n_(n), packed_(packed) {
        if constexpr (kPacks > 0) {
            each_pack<kPacks, kCount>(n,
                                      [&](int k, int first) { load_part(data, first, n, packed, held_[k]); });
        }
    }
    __device__ void get(int k, int first, float (&values)[kCount]) const {
        if constexpr (kPacks > 0) {
#pragma unroll
            for (int i = 0; i < kCount; ++i) values[i] = held_[k][i];
        } else {
            load_part(data_, first, n_, packed_, values);
        }
    }

  private:
    const T* data_;
    int n_;
    bool packed_;
    float held_[std::max(kPacks, 1)][kCount] = {};
};

// The form of kernel for rows of n elements of T, and the threads of a block.
struct RowForm {
    int packs = 0;  // per thread: 1, kHeld, or 0 (read again)
    unsigned threads = 0;
};
template <class T>
RowForm row_form(int n) {
    const auto packs = static_cast<std::size_t>((n + kPackOf<T> - 1) / kPackOf<T>);
    if (packs <= kWarpLanes) return {1, kWarpLanes};
    if (packs <= std::size_t{kRowThreads} * kHeld) {
        return {kHeld, threads_for((packs + kHeld - 1) / kHeld, kRowThreads)};
    }
    return {0, kRowThreads};
}

}  // namespace shardscope::trainer::cuda
