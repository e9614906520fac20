// The buffers that CUPTI fills with records: handed out in the program's threads, returned when full or at a
// flush, emptied by a worker of ours. No lock: CUPTI calls these functions while it holds its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace shardscope::profiler::cupti {

class CudaBuffers {
  public:
    static constexpr std::size_t kBytes = 8u << 20;  // about 38,000 kernels
    static constexpr std::uint32_t kMost = 32;       // held by CUPTI or waiting; 256 MiB
    static constexpr std::uint32_t kSpare = 2;       // kept zeroed for the next request

    struct Filled {
        Filled* next;
        std::uint8_t* data;
        std::size_t valid;
    };

    // A zeroed buffer of kBytes. nullptr if there are kMost already and `may_refuse` is set, or if there is
    // no memory.
    std::uint8_t* request(bool may_refuse) {
        for (auto& place : spare_) {
            if (Filled* buffer = place.exchange(nullptr, std::memory_order_acquire)) return buffer->data;
        }
        if (count_.fetch_add(1, std::memory_order_relaxed) >= kMost && may_refuse) {
            count_.fetch_sub(1, std::memory_order_relaxed);
            return nullptr;
        }
        Filled* buffer = make();
        return buffer != nullptr ? buffer->data : nullptr;
    }

    // Returns a buffer from CUPTI; any thread.
    void give_back(std::uint8_t* data, std::size_t valid) {
        Filled* buffer = of(data);
        buffer->valid = valid < kBytes ? valid : kBytes;
        Filled* first = filled_.load(std::memory_order_relaxed);
        do buffer->next = first;
        while (!filled_.compare_exchange_weak(first, buffer, std::memory_order_release,
                                              std::memory_order_relaxed));
    }

    // Worker: takes all returned buffers, oldest first; it must recycle() each.
    Filled* take_filled() {
        Filled* newest = filled_.exchange(nullptr, std::memory_order_acquire);
        Filled* oldest = nullptr;
        while (newest != nullptr) {
            Filled* next = newest->next;
            newest->next = oldest;
            oldest = newest;
            newest = next;
        }
        return oldest;
    }

    // Zeroes it and keeps it for the next request, or frees its memory.
    void recycle(Filled* buffer);

    // Returns a buffer from CUPTI that is not going to be read; any thread.
    void take_back(std::uint8_t* data, std::size_t valid) {
        Filled* buffer = of(data);
        buffer->valid = valid < kBytes ? valid : kBytes;
        recycle(buffer);
    }

    // Worker: prepares spare buffers, with their pages mapped, before they are requested.
    void provide_spare();

  private:
    static constexpr std::size_t kHeaderBytes = 4096;
    static Filled* of(std::uint8_t* data) { return reinterpret_cast<Filled*>(data - kHeaderBytes); }
    Filled* make();
    bool keep(Filled* buffer);

    std::atomic<Filled*> filled_{nullptr};
    std::atomic<Filled*> spare_[kSpare] = {};
    std::atomic<std::uint32_t> count_{0};
};

}  // namespace shardscope::profiler::cupti
