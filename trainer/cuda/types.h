// Element types on the device, and packs of them that move as one load or store of 16 bytes. Bf16 and
// Fp16 have the layout and the rounding of those in trainer/kernels (nearest, ties to even; a NaN stays a
// NaN, though its bits may differ): their buffers are interchangeable. Arithmetic is fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trainer/cuda/runtime.h"
#include "trainer/plan/dtype.h"

namespace shardscope::trainer::cuda {

struct Bf16 {
    std::uint16_t bits;  // no initializer: arrays of it are scratch memory
};
struct Fp16 {
    std::uint16_t bits;
};

// Calls use(T{}) with the type of a dtype.
template <class Use>
void with_type(plan::DType dtype, const Use& use) {
    if (dtype == plan::DType::bf16) return use(Bf16{});
    if (dtype == plan::DType::fp16) return use(Fp16{});
    use(float{});
}

__host__ __device__ inline std::uint32_t bits_of(float x) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}

__host__ __device__ inline float from_bits(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

__host__ __device__ inline float to_float(float x) {
    return x;
}
__host__ __device__ inline float to_float(Bf16 x) {
    return from_bits(static_cast<std::uint32_t>(x.bits) << 16);
}

__host__ __device__ inline Bf16 to_bf16(float x) {
#ifdef __CUDA_ARCH__
    std::uint16_t bits;  // one instruction (PTX ISA, cvt.rn.bf16.f32)
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return {bits};
#else
    const std::uint32_t bits = bits_of(x);
    const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const std::uint32_t quiet = bits | 0x00400000u;
    return {static_cast<std::uint16_t>(((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) >> 16)};
#endif
}

__host__ __device__ inline float to_float(Fp16 x) {
#ifdef __CUDA_ARCH__
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
#else
    const std::uint32_t placed = (x.bits & 0x7fffu) << 13, sign = (x.bits & 0x8000u) << 16;
    const std::uint32_t normal = placed + (112u << 23);  // the exponent's bias is 127, not 15
    if (placed < 0x00800000u) return from_bits(bits_of(from_bits(normal + 0x00800000u) - 0x1p-14f) | sign);
    return from_bits((placed >= 0x0f800000u ? normal + (112u << 23) : normal) | sign);
#endif
}

__host__ __device__ inline Fp16 to_fp16(float x) {
    std::uint16_t half;
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
#else
    const std::uint32_t bits = bits_of(x), size = bits & 0x7fffffffu;
    std::uint32_t chosen = (size + 0x0fffu + ((size >> 13) & 1u) - (112u << 23)) >> 13;
    if (size < 0x38800000u) chosen = bits_of(from_bits(size) + 0.5f) - 0x3f000000u;  // a subnormal
    if (size >= 0x477ff000u) chosen = 0x7c00u;
    if (size > 0x7f800000u) chosen = ((size >> 13) & 0x03ffu) | 0x7e00u;
    half = static_cast<std::uint16_t>(chosen | ((bits >> 16) & 0x8000u));
#endif
    return {half};
}

// A float as T.
template <class T>
__host__ __device__ T rounded(float x);
template <>
__host__ __device__ inline float rounded<float>(float x) {
    return x;
}
template <>
__host__ __device__ inline Bf16 rounded<Bf16>(float x) {
    return to_bf16(x);
}
template <>
__host__ __device__ inline Fp16 rounded<Fp16>(float x) {
    return to_fp16(x);
}

// kCount elements side by side, aligned for the widest load that fits.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
    T at[kCount];
};

// Elements of T in 16 bytes.
template <class T>
inline constexpr int kPackOf = static_cast<int>(16 / sizeof(T));

// `from` and `to` are aligned for the pack.
template <int kCount, class T>
__device__ inline Pack<T, kCount> load_pack(const T* from) {
#ifdef __CUDA_ARCH__
    return *reinterpret_cast<const Pack<T, kCount>*>(from);
#else
    Pack<T, kCount> pack;  // formally no Pack object exists at that address
    std::memcpy(&pack, from, sizeof pack);
    return pack;
#endif
}
template <class T, int kCount>
__device__ inline void store_pack(T* to, const Pack<T, kCount>& pack) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
#else
    std::memcpy(static_cast<void*>(to), &pack, sizeof pack);
#endif
}

// The same with conversion to floats and back.
template <int kCount, class T>
__device__ inline void load_floats(const T* from, float (&values)[kCount]) {
    const Pack<T, kCount> pack = load_pack<kCount>(from);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = to_float(pack.at[i]);
}
template <int kCount, class T>
__device__ inline void store_floats(T* to, const float (&values)[kCount]) {
    Pack<T, kCount> pack;
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.at[i] = rounded<T>(values[i]);
    store_pack(to, pack);
}

// Whether packs of 16 bytes can be read there; true for null, which is an absent operand.
inline bool is_aligned(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

// Of n elements only those of the rows that the counts add up to exist; without counts, all do.
struct Existing {
    const std::int32_t* counts = nullptr;
    int groups = 0, features = 0;
};

}  // namespace shardscope::trainer::cuda
