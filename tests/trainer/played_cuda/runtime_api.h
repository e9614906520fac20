// The functions of the CUDA runtime that kernels and their tests need, played on the CPU: device memory is
// the heap's, and every stream is in step with the host: what is enqueued has happened when the call returns.
#pragma once

#include <cstddef>
#include <functional>

enum cudaError_t : int {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorUnknown = 999,
};
struct CUstream_st;
using cudaStream_t = CUstream_st*;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaMalloc(void** address, std::size_t bytes);
cudaError_t cudaFree(void* address);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

namespace played_cuda {

// Work of a stream.
void enqueue(cudaStream_t stream, const std::function<void()>& work);

}  // namespace played_cuda
