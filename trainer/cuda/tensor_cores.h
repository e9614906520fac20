// Warp-wide instructions of sm_80 and later as functions: the matmul of 16x8x16 tiles of Bf16 or Fp16 with
// fp32 sums, loads of 8x8 tiles from shared memory, asynchronous copies to shared memory. All 32 lanes of the
// warp call them together. Source: NVIDIA, PTX ISA, "Matrix multiply-accumulate operation using mma
// instruction" (m16n8k16), "ldmatrix", "cp.async". The pieces of a lane (g = lane / 4, i = lane % 4 * 2; an
// .x2 register holds two neighbouring elements, the first below):
//   A [16,16]  a[0] row g, columns i, i+1 | a[1] row g+8 | a[2] row g, columns i+8, i+9 | a[3] row g+8
//   B [16,8]   b0 rows i, i+1 of column g | b1 rows i+8, i+9 of column g
//   C [16,8]   c[0], c[1] row g, columns i, i+1 | c[2], c[3] row g+8 (a row alone: the same columns)
// So the C tiles of columns 0…7 and 8…15, rounded, are the A tile of the next matmul.
#pragma once

#include <cstdint>
#include <type_traits>

#include "trainer/cuda/types.h"

#ifdef SHARDSCOPE_PLAYED_CUDA
#include "tests/trainer/played_cuda/tensor_cores.h"
#else

namespace shardscope::trainer::cuda {

// c += a b, of elements of T.
template <class T>
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
    if constexpr (std::is_same_v<T, Fp16>) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
}

// Four 8x8 tiles from shared memory: lane l gives the address of row l % 8 of tile l / 8, 16 bytes
// aligned to 16, and receives elements i and i+1 of row g of each tile.
template <class T>
__device__ __forceinline__ void load_tiles(std::uint32_t (&tiles)[4], const T* row) {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(address)
                 : "memory");
}
// The same, each tile transposed: elements of rows i and i+1 in column g.
template <class T>
__device__ __forceinline__ void load_tiles_transposed(std::uint32_t (&tiles)[4], const T* row) {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(address)
                 : "memory");
}

// Copies 16 bytes, both addresses aligned to 16, to shared memory; zeros if not `wanted` (then `from` is not
// read).
template <class T>
__device__ __forceinline__ void copy_later(T* to, const T* from, bool wanted) {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(wanted ? 16 : 0)
                 : "memory");
}
// end_copies ends a group of this thread's copies; wait_for_copies waits until all but its last `kBehind`
// groups have arrived (other threads see them after a barrier).
__device__ __forceinline__ void end_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kBehind>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kBehind) : "memory");
}

// Both rounded to the nearest T, ties to even; `low` in the lower half.
template <class T>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
    std::uint32_t packed;
    if constexpr (std::is_same_v<T, Fp16>) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    } else {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    }
    return packed;
}

// 2^x within 2 units in the last place; 0 below -126 (PTX ISA, ex2.approx.ftz).
__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace shardscope::trainer::cuda

#endif
