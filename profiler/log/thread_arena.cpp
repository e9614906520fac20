// Anonymous pages for one log.
#include "profiler/log/thread_arena.h"

#include <algorithm>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace shardscope::profiler {

ThreadArena::ThreadArena(std::size_t max_bytes, MemoryBudget& budget)
    : max_chunks_(static_cast<std::uint32_t>(std::clamp<std::size_t>(max_bytes / kChunkBytes, 2, 1u << 20))),
      budget_(budget),
      owner_(::getpid()) {
    void* memory = ::mmap(nullptr, std::size_t{max_chunks_} * kChunkBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(memory);
    arena_.init(base_, kChunkBytes, max_chunks_, &control_, &ThreadArena::touch, this);
}

ThreadArena::~ThreadArena() {
    ::munmap(base_, std::size_t{max_chunks_} * kChunkBytes);
    budget_.give(std::size_t{control_.chunks.load(std::memory_order_relaxed)} * kChunkBytes);
}

// Touches the pages, so that recording does not fault on them: a first touch doubles the cost of an event.
bool ThreadArena::touch(void* self, std::uint32_t index) {
    auto& arena = *static_cast<ThreadArena*>(self);
    if (arena.owner_ != ::getpid() || !arena.budget_.take(kChunkBytes)) return false;
    std::byte* chunk = arena.base_ + std::size_t{index} * kChunkBytes;
    for (std::size_t page = 0; page < kChunkBytes; page += 4096) {
        *const_cast<volatile std::byte*>(chunk + page) = std::byte{0};
    }
    return true;
}

}  // namespace shardscope::profiler
