// The played runtime; see runtime_api.h.
#include <cstdlib>
#include <cstring>

#include "tests/trainer/played_cuda/runtime_api.h"

const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "no error";
        case cudaErrorInvalidValue:
            return "invalid argument";
        case cudaErrorMemoryAllocation:
            return "out of memory";
        default:
            return "unknown error";
    }
}
const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "cudaSuccess";
        case cudaErrorInvalidValue:
            return "cudaErrorInvalidValue";
        case cudaErrorMemoryAllocation:
            return "cudaErrorMemoryAllocation";
        default:
            return "cudaErrorUnknown";
    }
}
cudaError_t cudaGetLastError() {
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
    return kernel && value >= 0 && value <= 227 * 1024 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaMalloc(void** address, std::size_t bytes) {
    *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *address || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* address) {
    std::free(address);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
    return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
    if (bytes > 0) std::memset(to, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaSuccess;
}

namespace played_cuda {

void enqueue(cudaStream_t, const std::function<void()>& work) {
    work();
}

}  // namespace played_cuda
