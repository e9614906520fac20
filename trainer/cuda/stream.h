// A CUDA stream whose items are counted, so that an event can be named by (stream, sequence) as elsewhere in
// the trainer. CUDA events are recorded only where somebody waits. Used by its rank's host thread alone.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "trainer/cuda/runtime.h"

namespace shardscope::trainer::cuda {

class CountedStream {
  public:
    // On the current device. `high`: goes before streams that are not.
    explicit CountedStream(bool high);
    ~CountedStream();
    CountedStream(const CountedStream&) = delete;
    CountedStream& operator=(const CountedStream&) = delete;

    cudaStream_t get() const { return stream_; }
    // One more item has been enqueued; its sequence, 1 the first.
    std::uint64_t appended() { return ++enqueued_; }

    // A later wait for this sequence is for no more than what the stream holds now.
    void hold(std::uint64_t sequence);
    // Whether the stream has completed that many items. Never blocks. Throws CudaError where the device has
    // failed.
    bool happened(std::uint64_t sequence);
    // An event that happens when `sequence` has; null: it has already. Good until that has happened.
    cudaEvent_t event_of(std::uint64_t sequence);

  private:
    struct Pending {
        std::uint64_t sequence = 0;  // happens when so many items are complete
        cudaEvent_t event = nullptr;
    };
    void poll();
    cudaEvent_t record();

    int device_ = 0;
    cudaStream_t stream_ = nullptr;
    std::uint64_t enqueued_ = 0, completed_ = 0;
    std::deque<Pending> pending_;  // by rising sequence
    std::vector<cudaEvent_t> spare_;
};

// An event without times. Move-only owner.
class Event {
  public:
    Event();
    ~Event();
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Event& operator=(Event&&) = delete;
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    cudaEvent_t get() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};

}  // namespace shardscope::trainer::cuda
