// See device.h.
#include <algorithm>

#include "trainer/cuda/device.h"

namespace shardscope::trainer::cuda {

Workspace::~Workspace() {
    if (data_) cudaFree(data_);  // waits for the work that still uses it
}

std::byte* Workspace::take(std::size_t bytes) {
    if (bytes > bytes_) {
        check(cudaStreamSynchronize(stream_), "waiting for a stream before its workspace grows");
        if (data_) check(cudaFree(data_), "cudaFree of a workspace");
        data_ = nullptr;
        bytes_ = 0;
        const std::size_t wanted = std::max(bytes + bytes / 4, std::size_t{1} << 20);  // grows rarely
        void* fresh = nullptr;
        check(cudaMalloc(&fresh, wanted), "cudaMalloc of a workspace");
        data_ = static_cast<std::byte*>(fresh);
        bytes_ = wanted;
    }
    return data_;
}

}  // namespace shardscope::trainer::cuda
