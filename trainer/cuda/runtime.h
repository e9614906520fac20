// The base of every CUDA source of the trainer: the runtime, errors as exceptions, and the one place that
// launches kernels. Sources that include this compile with nvcc, and with a C++ compiler against a simulated
// <cuda_runtime.h> (tests/trainer/played_cuda), which runs a grid's threads as fibers. Therefore they launch
// with launch(), get dynamic shared memory with dynamic_shared(), and use no syntax that only nvcc knows.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include <cuda_runtime.h>

namespace shardscope::trainer::cuda {

// A failed call of the CUDA runtime, or of a library above it: what was tried and what it returned.
class CudaError : public std::runtime_error {
  public:
    explicit CudaError(const std::string& sentence, cudaError_t code = cudaErrorUnknown)
        : std::runtime_error(sentence), code_(code) {}
    cudaError_t code() const { return code_; }

  private:
    cudaError_t code_;
};

// Throws CudaError if `result` is an error. `what`: the call and its purpose.
inline void check(cudaError_t result, const char* what) {
    if (result == cudaSuccess) return;
    throw CudaError(
        std::string(what) + " failed: " + cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")",
        result);
}

// The dynamic shared memory that a kernel gets without requesting more.
inline constexpr std::size_t kSharedWithoutAsking = 48 * 1024;

// A kernel's large parameter, declared `const __grid_constant__ GridConstant<T> x`: all threads read the one
// copy that the launch made (CUDA C++ Programming Guide, __grid_constant__ parameters).
#ifdef SHARDSCOPE_PLAYED_CUDA
template <class T>
using GridConstant = const T&;
#else
template <class T>
using GridConstant = T;
#endif

// The next two are only for CUDA sources; C++ sources get the rest of this header.
#if defined(__CUDACC__) || defined(SHARDSCOPE_PLAYED_CUDA)

#if defined(__CUDACC__) || defined(SHARDSCOPE_PLAYED_CUDA)  // a C++ compiler does not know <<<>>>

// Enqueues grid.x * grid.y * grid.z blocks of the kernel; an empty grid is not launched. Throws CudaError
// if the launch itself is refused (a fault inside a kernel appears at a later call).
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            A&&... args) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    if (shared_bytes > kSharedWithoutAsking) {
        check(
            cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
            "cudaFuncSetAttribute for a kernel's shared memory");
    }
#ifdef SHARDSCOPE_PLAYED_CUDA
    played_cuda::launch(kernel, grid, block, shared_bytes, stream, std::forward<A>(args)...);
#else
    // clang-format off
    kernel<<<grid, block, shared_bytes, stream>>>(std::forward<A>(args)...);
    // clang-format on
#endif
    check(cudaGetLastError(), "the launch of a kernel");
}

// The block's dynamic shared memory (launch's shared_bytes), aligned to 16 bytes.
template <class T>
__device__ inline T* dynamic_shared() {
#ifdef SHARDSCOPE_PLAYED_CUDA
    return static_cast<T*>(played_cuda::dynamic_shared());
#else
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    return reinterpret_cast<T*>(shared_bytes);
#endif
}

#endif

#endif

}  // namespace shardscope::trainer::cuda
