// The part of CUDA C++ in which kernels are written, simulated on the CPU: qualifiers, dim3 and the built-in
// indices, barriers, warp shuffles and votes, atomics, vector types, fast arithmetic, and the launch of a
// grid.
//
// run_grid() runs block by block; the threads of a block are fibers on the calling OS thread, each running
// until it reaches a barrier (of its block or its warp). So `__shared__` is one variable per OS thread, and
// kernels run without locks. What is undefined on real hardware is a failure here, thrown as PlayError with
// one sentence: a barrier that not all threads of the block reach (also if some have ended), a warp operation
// whose mask names lanes that do not arrive, an access beyond the dynamic shared memory. That memory is
// filled with NaN when a block begins. One warp is 32 threads of the block in the order of x, then y, then z.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#define SHARDSCOPE_PLAYED_CUDA 1

// The names are CUDA's.
// NOLINTBEGIN(bugprone-reserved-identifier)

#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

// --- vectors ---------------------------------------------------------------------------------------------

struct uint3 {
    unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
    constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
        : x(width), y(height), z(depth) {}
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
inline int2 make_int2(int x, int y) {
    return {x, y};
}
inline int4 make_int4(int x, int y, int z, int w) {
    return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}
inline float2 make_float2(float x, float y) {
    return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
inline double2 make_double2(double x, double y) {
    return {x, y};
}

// --- the fiber that runs ---------------------------------------------------------------------------------

namespace played_cuda {

class PlayError : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

struct Place {
    uint3 thread, block;
    dim3 block_size, grid_size;
    unsigned lane = 0;  // within the warp
};
// The place of the fiber that runs on this OS thread.
extern thread_local Place place;

inline constexpr unsigned kWarp = 32;

void block_barrier(const char* what);
// Lanes of `mask` wait for each other, each with a value of `bytes` bytes; `values` receives those of all 32,
// one after the other (unspecified for lanes that are not in the mask).
void exchange(unsigned mask, const void* value, std::size_t bytes, void* values, const char* what);
// The block's dynamic shared memory, `dynamic_shared_bytes()` long.
void* dynamic_shared();
std::size_t dynamic_shared_bytes();

// Runs `thread` once for each thread of the grid. Throws PlayError; the block's other threads are then
// abandoned (their destructors do not run).
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread);

// How many basic blocks of device and host code this thread has executed, in the sources that are compiled to
// count them (tests/trainer/CMakeLists.txt): a measure of work without a clock.
std::uint64_t steps();

template <class T>
T shuffle(unsigned mask, T value, unsigned source_lane, const char* what) {
    static_assert(std::is_trivially_copyable_v<T>);
    T values[kWarp];
    exchange(mask, &value, sizeof value, values, what);
    return values[source_lane % kWarp];
}

}  // namespace played_cuda

#define threadIdx (::played_cuda::place.thread)
#define blockIdx (::played_cuda::place.block)
#define blockDim (::played_cuda::place.block_size)
#define gridDim (::played_cuda::place.grid_size)
inline constexpr int warpSize = 32;

// --- barriers, shuffles, votes ---------------------------------------------------------------------------

inline void __syncthreads() {
    played_cuda::block_barrier("__syncthreads");
}
// The number of the block's predicates that are not 0, and whether all or any are: these are barriers, too.
int __syncthreads_count(int predicate);
int __syncthreads_and(int predicate);
int __syncthreads_or(int predicate);

inline void __syncwarp(unsigned mask = 0xffffffffu) {
    unsigned char nothing = 0, all[played_cuda::kWarp];
    played_cuda::exchange(mask, &nothing, 1, all, "__syncwarp");
}

// `width` divides the warp into groups of 2, 4, 8, 16 or 32 lanes that shuffle among themselves; a lane whose
// source is outside its group gets its own value (CUDA C++ Programming Guide, warp shuffle functions).
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    const unsigned lane = played_cuda::place.lane, group = lane & ~static_cast<unsigned>(width - 1);
    return played_cuda::shuffle(mask, value, group + (static_cast<unsigned>(source) & (width - 1)),
                                "__shfl_sync");
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
    const unsigned lane = played_cuda::place.lane, end = (lane & ~static_cast<unsigned>(width - 1)) + width;
    const unsigned source = lane ^ static_cast<unsigned>(lanes);
    return played_cuda::shuffle(mask, value, source < end ? source : lane, "__shfl_xor_sync");
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32) {
    const unsigned lane = played_cuda::place.lane, end = (lane & ~static_cast<unsigned>(width - 1)) + width;
    return played_cuda::shuffle(mask, value, lane + lanes < end ? lane + lanes : lane, "__shfl_down_sync");
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32) {
    const unsigned lane = played_cuda::place.lane, begin = lane & ~static_cast<unsigned>(width - 1);
    return played_cuda::shuffle(mask, value, lane >= begin + lanes ? lane - lanes : lane, "__shfl_up_sync");
}
unsigned __ballot_sync(unsigned mask, int predicate);
inline int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}

// Memory is ordered within the one OS thread that runs a grid.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}

// --- atomics: several OS threads may play grids on the same memory -----------------------------------------

namespace played_cuda {
// *address = f(*address) atomically; returns the old value.
template <class T, class F>
T update(T* address, F f) {
    T before, after;
    __atomic_load(address, &before, __ATOMIC_RELAXED);
    do {
        after = f(before);
    } while (!__atomic_compare_exchange(address, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return before;
}
}  // namespace played_cuda

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
    return played_cuda::update(address, [=](T here) { return static_cast<T>(here + value); });
}
template <class T>
T atomicSub(T* address, std::type_identity_t<T> value) {
    return played_cuda::update(address, [=](T here) { return static_cast<T>(here - value); });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
    return played_cuda::update(address, [=](T here) { return here > value ? here : value; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
    return played_cuda::update(address, [=](T here) { return here < value ? here : value; });
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
    return played_cuda::update(address, [=](T here) { return here | value; });
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
    return played_cuda::update(address, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
    return played_cuda::update(address, [=](T here) { return here == expected ? value : here; });
}

// --- arithmetic ------------------------------------------------------------------------------------------

// The device's fast forms differ by a few units in the last place; here they are as exact as the C library.
inline float __expf(float x) {
    return std::exp(x);
}
inline float __logf(float x) {
    return std::log(x);
}
inline float __log2f(float x) {
    return std::log2(x);
}
inline float __fdividef(float x, float y) {
    return x / y;
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __fsqrt_rn(float x) {
    return std::sqrt(x);
}
inline float rsqrtf(float x) {
    return 1.0f / std::sqrt(x);
}
inline float __fmaf_rn(float x, float y, float z) {
    return std::fma(x, y, z);
}
inline float __fmul_rn(float x, float y) {
    return x * y;
}
inline float __fadd_rn(float x, float y) {
    return x + y;
}
inline unsigned __umulhi(unsigned x, unsigned y) {
    return static_cast<unsigned>((static_cast<std::uint64_t>(x) * y) >> 32);
}
inline float __uint_as_float(unsigned bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
inline unsigned __float_as_uint(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline float __int_as_float(int bits) {
    return __uint_as_float(static_cast<unsigned>(bits));
}
inline int __float_as_int(float x) {
    return static_cast<int>(__float_as_uint(x));
}
inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __clz(int x) {
    return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
template <class T>
T __ldg(const T* address) {
    return *address;
}
template <class T>
T __ldcs(const T* address) {
    return *address;
}
template <class T>
void __stcs(T* address, T value) {
    *address = value;
}
inline int min(int a, int b) {
    return a < b ? a : b;
}
inline int max(int a, int b) {
    return a > b ? a : b;
}
inline float fdividef(float x, float y) {
    return x / y;
}

// NOLINTEND(bugprone-reserved-identifier)
