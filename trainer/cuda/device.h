// What a kernel launch needs to know of its device and stream, shared by all launches of one rank's stream.
// Only that rank's thread uses it.
#pragma once

#include <cstddef>

#include "trainer/cuda/runtime.h"

namespace shardscope::trainer::cuda {

class Gemm;

// Device memory that a kernel needs only while it runs (partial sums, the order of an embedding's rows): one
// growing block per stream, kept as long as the stream, so that a step allocates nothing. The block belongs
// to the kernels that are enqueued until the next take(). Like a library's own buffers it is not part of the
// memory account; bytes() is its size.
class Workspace {
  public:
    explicit Workspace(cudaStream_t stream) : stream_(stream) {}
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    // At least `bytes`, aligned to 256. Growing waits for the stream. Throws CudaError.
    std::byte* take(std::size_t bytes);
    template <class T>
    T* take_of(std::size_t n) {
        return reinterpret_cast<T*>(take(n * sizeof(T)));
    }
    std::size_t bytes() const { return bytes_; }

  private:
    cudaStream_t stream_;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

struct DeviceContext {
    cudaStream_t stream = nullptr;
    Workspace& workspace;  // of `stream`
    Gemm& gemm;
};

}  // namespace shardscope::trainer::cuda
