// A CUDA stream whose items are counted, so that an event can be named by (stream, sequence) as elsewhere in
// the trainer. CUDA events are recorded only if something waits for them. Only its rank's host thread uses
// it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "trainer/cuda/runtime.h"

namespace shardscope::trainer::cuda {

class CountedStream {
  public:
    // Created on the current device. `high`: takes priority over streams without it.
    explicit CountedStream(bool high);
    ~CountedStream();
    CountedStream(const CountedStream&) = delete;
    CountedStream& operator=(const CountedStream&) = delete;

    cudaStream_t get() const { return stream_; }
    // Records that one more item was enqueued; returns its sequence, 1 for the first.
    std::uint64_t appended() { return ++enqueued_; }

    // Limits later waits for this sequence to the items that the stream holds now.
    void hold(std::uint64_t sequence);
    // Whether the stream has completed that many items. Never blocks. Throws CudaError if the device has
    // failed.
    bool happened(std::uint64_t sequence);
    // An event that happens when `sequence` has; null if it already has. Valid until it has happened.
    cudaEvent_t event_of(std::uint64_t sequence);

  private:
    struct Pending {
        std::uint64_t sequence = 0;  // happens when this many items are complete
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

// Move-only owner of an event without timing.
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
