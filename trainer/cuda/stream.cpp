#include "trainer/cuda/stream.h"

#include <algorithm>

namespace shardscope::trainer::cuda {

CountedStream::CountedStream(bool high) {
    check(cudaGetDevice(&device_), "cudaGetDevice");
    int lowest = 0, highest = 0;
    check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, high ? highest : lowest),
          "cudaStreamCreateWithPriority");
}

CountedStream::~CountedStream() {
    for (const Pending& pending : pending_) cudaEventDestroy(pending.event);
    for (cudaEvent_t event : spare_) cudaEventDestroy(event);
    if (stream_) cudaStreamDestroy(stream_);
}

void CountedStream::poll() {
    while (!pending_.empty()) {
        const cudaError_t state = cudaEventQuery(pending_.front().event);
        if (state == cudaErrorNotReady) {
            (void)cudaGetLastError();  // "not ready" counts as an error, and the next launch would report it
            return;
        }
        check(state, "the work of a stream");
        completed_ = pending_.front().sequence;
        spare_.push_back(pending_.front().event);
        pending_.pop_front();
    }
}

// Records an event for everything that the stream holds.
cudaEvent_t CountedStream::record() {
    cudaEvent_t event = nullptr;
    if (spare_.empty()) {
        // An event belongs to the device that is current when it is made, and can be recorded only there.
        int current = 0;
        check(cudaGetDevice(&current), "cudaGetDevice");
        if (current != device_) check(cudaSetDevice(device_), "cudaSetDevice");
        check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
        if (current != device_) check(cudaSetDevice(current), "cudaSetDevice");
    } else {
        event = spare_.back();
        spare_.pop_back();
    }
    check(cudaEventRecord(event, stream_), "cudaEventRecord");
    pending_.push_back({enqueued_, event});
    return event;
}

void CountedStream::hold(std::uint64_t sequence) {
    if (sequence == 0 || sequence <= completed_) return;
    if (!pending_.empty() && pending_.back().sequence >= sequence) return;
    // Recycles events that have happened, so that their number stays bounded.
    if (pending_.size() >= 64) poll();
    record();
}

bool CountedStream::happened(std::uint64_t sequence) {
    if (sequence <= completed_) return true;
    hold(sequence);
    poll();
    return sequence <= completed_;
}

cudaEvent_t CountedStream::event_of(std::uint64_t sequence) {
    if (happened(sequence)) return nullptr;
    const auto covering = std::lower_bound(
        pending_.begin(), pending_.end(), sequence,
        [](const Pending& pending, std::uint64_t wanted) { return pending.sequence < wanted; });
    return covering->event;
}

Event::Event() {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

Event::~Event() {
    if (event_) cudaEventDestroy(event_);
}

}  // namespace shardscope::trainer::cuda
