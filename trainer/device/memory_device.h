// What an allocator needs of a device: memory, and whether streams have come past an item. A simulated run
// has one that hands out addresses alone (trainer/sim).
#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/device/stream_event.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

class MemoryDevice {
  public:
    MemoryDevice() = default;
    virtual ~MemoryDevice() = default;
    MemoryDevice(const MemoryDevice&) = delete;
    MemoryDevice& operator=(const MemoryDevice&) = delete;

    // Whether an event has happened; never blocks. Of events that were never enqueued: yes.
    virtual bool happened(StreamEvent event) = 0;
    // Blocks the host thread. Rethrows the first failure of any work of the run.
    virtual void wait(StreamEvent event) = 0;
    // Sets all bits of a piece of memory, after `waits`, on a stream of its own.
    virtual StreamEvent poison(StreamIndex stream, const Waits& waits, std::byte* data,
                               std::int64_t bytes) = 0;

    // `bytes` of a space for a rank, all bits set (`poisoned`) or anything; null where the system has no
    // more.
    virtual std::byte* take(int rank, MemorySpace space, std::int64_t bytes, bool poisoned) = 0;
    // No work uses it any more.
    virtual void give_back(int rank, MemorySpace space, std::byte* data) noexcept = 0;
};

}  // namespace shardscope::trainer
