// trainer/cuda/tensor_cores.h, simulated: the same pieces in the same lanes, made by exchanges between the
// lanes of a warp. An asynchronous copy to shared memory may happen at any time between its call and the wait
// for it: here it happens at the first of these moments, or, under LateCopies, at the last. A kernel is right
// if both give the same.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "trainer/cuda/types.h"

namespace played_cuda {

// While such an object lives, copies happen at the wait for them.
class LateCopies {
  public:
    LateCopies();
    ~LateCopies();
    LateCopies(const LateCopies&) = delete;
    LateCopies& operator=(const LateCopies&) = delete;
};

// Copies on behalf of the running thread. Null `from` writes zeros.
void copy_16_bytes(void* to, const void* from);
void end_group();
void wait_for_groups(int behind);

}  // namespace played_cuda

namespace shardscope::trainer::cuda {

namespace played {

template <class T>
float half_of(std::uint32_t pair, int which) {
    return to_float(T{static_cast<std::uint16_t>(pair >> (16 * which))});
}

// Lane l's 16 bytes become row l % 8 of tile l / 8.
struct Tiles {
    std::uint16_t at[4][8][8];
    explicit Tiles(const void* row) {
        static_assert(sizeof at == 32 * 16);
        played_cuda::exchange(0xffffffffu, row, 16, at, "ldmatrix");
    }
};

}  // namespace played

template <class T>
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    std::uint32_t all_a[32][4], all_b[32][2];
    const std::uint32_t b[2] = {b0, b1};
    played_cuda::exchange(0xffffffffu, a, sizeof a, all_a, "mma");
    played_cuda::exchange(0xffffffffu, b, sizeof b, all_b, "mma");
    const unsigned lane = played_cuda::place.lane;
    for (unsigned piece = 0; piece < 4; ++piece) {
        const unsigned row = lane / 4 + piece / 2 * 8, column = lane % 4 * 2 + piece % 2;
        for (unsigned k = 0; k < 16; ++k) {
            // Element (row, k) of A: lane row % 8 * 4 + k % 8 / 2, register row / 8 + k / 8 * 2.
            const float x = played::half_of<T>(all_a[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2);
            const float y = played::half_of<T>(all_b[column * 4 + k % 8 / 2][k / 8], k % 2);
            c[piece] += x * y;
        }
    }
}

template <class T>
void load_tiles(std::uint32_t (&tiles)[4], const T* row) {
    const played::Tiles whole(row);
    const unsigned lane = played_cuda::place.lane, g = lane / 4, i = lane % 4 * 2;
    for (unsigned tile = 0; tile < 4; ++tile) {
        tiles[tile] = whole.at[tile][g][i] | static_cast<std::uint32_t>(whole.at[tile][g][i + 1]) << 16;
    }
}
template <class T>
void load_tiles_transposed(std::uint32_t (&tiles)[4], const T* row) {
    const played::Tiles whole(row);
    const unsigned lane = played_cuda::place.lane, g = lane / 4, i = lane % 4 * 2;
    for (unsigned tile = 0; tile < 4; ++tile) {
        tiles[tile] = whole.at[tile][i][g] | static_cast<std::uint32_t>(whole.at[tile][i + 1][g]) << 16;
    }
}

template <class T>
void copy_later(T* to, const T* from, bool wanted) {
    played_cuda::copy_16_bytes(to, wanted ? from : nullptr);
}
inline void end_copies() {
    played_cuda::end_group();
}
template <int kBehind>
inline void wait_for_copies() {
    played_cuda::wait_for_groups(kBehind);
}

template <class T>
std::uint32_t pack(float low, float high) {
    return rounded<T>(low).bits | static_cast<std::uint32_t>(rounded<T>(high).bits) << 16;
}

inline float power_of_two(float x) {
    return x < -126.0f ? 0.0f : std::exp2(x);
}

}  // namespace shardscope::trainer::cuda
