// Memory of a CUDA device for the tests of its kernels, real or played.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/cuda/runtime.h"

namespace shardscope::trainer::testing {

// Why there is no device to run kernels on; empty: there is one.
inline std::string no_device() {
    int devices = 0;
    const cudaError_t result = cudaGetDeviceCount(&devices);
    if (result != cudaSuccess) return std::string("no CUDA device: ") + cudaGetErrorString(result);
    return devices == 0 ? "no CUDA device" : "";
}

// A device's copy of elements.
template <class T>
class DeviceMemory {
  public:
    explicit DeviceMemory(const std::vector<T>& values) : count_(values.size()) {
        void* address = nullptr;
        cuda::check(cudaMalloc(&address, bytes()), "cudaMalloc");
        data_ = static_cast<T*>(address);
        if (count_ == 0) return;
        cuda::check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    ~DeviceMemory() { cudaFree(data_); }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    T* data() const { return data_; }
    std::byte* bytes_at() const { return reinterpret_cast<std::byte*>(data_); }
    std::size_t bytes() const { return count_ * sizeof(T); }
    // What is there now; waits for all work of the device.
    std::vector<T> read() const {
        std::vector<T> values(count_);
        if (count_ == 0) return values;
        cuda::check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        return values;
    }

  private:
    T* data_ = nullptr;
    std::size_t count_ = 0;
};

}  // namespace shardscope::trainer::testing
