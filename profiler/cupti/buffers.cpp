// Memory of the buffers: anonymous pages, a header page in front of each.
#include "profiler/cupti/buffers.h"

#include <new>

#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14; elsewhere it fails and pages are made on first touch
#endif

namespace shardscope::profiler::cupti {

CudaBuffers::Filled* CudaBuffers::make() {
    void* memory =
        ::mmap(nullptr, kHeaderBytes + kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        count_.fetch_sub(1, std::memory_order_relaxed);
        return nullptr;
    }
    return new (memory) Filled{nullptr, static_cast<std::uint8_t*>(memory) + kHeaderBytes, 0};
}

bool CudaBuffers::keep(Filled* buffer) {
    for (auto& place : spare_) {
        Filled* none = nullptr;
        if (place.compare_exchange_strong(none, buffer, std::memory_order_release)) return true;
    }
    return false;
}

void CudaBuffers::recycle(Filled* buffer) {
    // Only `valid` bytes were written: the rest is still zero.
    ::memset(buffer->data, 0, buffer->valid);
    if (keep(buffer)) return;
    ::munmap(buffer, kHeaderBytes + kBytes);
    count_.fetch_sub(1, std::memory_order_relaxed);
}

void CudaBuffers::provide_spare() {
    for (auto& place : spare_) {
        if (place.load(std::memory_order_relaxed) != nullptr) continue;
        if (count_.fetch_add(1, std::memory_order_relaxed) >= kMost) {
            count_.fetch_sub(1, std::memory_order_relaxed);
            return;
        }
        Filled* buffer = make();
        if (buffer == nullptr) return;
        ::madvise(buffer->data, kBytes, MADV_POPULATE_WRITE);
        if (keep(buffer)) continue;
        ::munmap(buffer, kHeaderBytes + kBytes);
        count_.fetch_sub(1, std::memory_order_relaxed);
    }
}

}  // namespace shardscope::profiler::cupti
