// What an allocator needs from a device: memory, and whether streams have passed an item. A simulated run has
// one that only hands out addresses (trainer/sim).
#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/device/stream_event.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::device {

class MemoryDevice {
  public:
    MemoryDevice() = default;
    virtual ~MemoryDevice() = default;
    MemoryDevice(const MemoryDevice&) = delete;
    MemoryDevice& operator=(const MemoryDevice&) = delete;

    // Whether an event has happened; never blocks. True for events that were never enqueued.
    virtual bool happened(StreamEvent event) = 0;
    // Blocks the host thread. Rethrows the first failure of any work of the run.
    virtual void wait(StreamEvent event) = 0;
    // Sets all bits of a piece of memory, after `waits`, on `stream`.
    virtual StreamEvent poison(StreamIndex stream, const Waits& waits, std::byte* data,
                               std::int64_t bytes) = 0;

    // Allocates `bytes` of a space for a rank, with all bits set (`poisoned`) or undefined contents; null if
    // the system has no more.
    virtual std::byte* take(int rank, plan::MemorySpace space, std::int64_t bytes, bool poisoned) = 0;
    // Frees memory that no work uses any more.
    virtual void give_back(int rank, plan::MemorySpace space, std::byte* data) noexcept = 0;
};

}  // namespace shardscope::trainer::device
