// How the host names work on a stream: a stream, an event, and events to wait for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>

#include "trainer/plan/plan.h"

namespace shardscope::trainer::device {

using StreamIndex = std::int32_t;  // over all ranks of the process

struct StreamEvent {
    StreamIndex stream = -1;
    std::uint64_t sequence = 0;  // happened when the stream has completed this many items; 0: immediately
};

// Events of at most kCapacity streams; for each stream the latest counts.
class Waits {
  public:
    static constexpr std::size_t kCapacity = plan::kStreams;  // those of one rank
    Waits() = default;
    // Most items wait for one event: only those that are there are copied.
    Waits(const Waits& other) { *this = other; }
    Waits& operator=(const Waits& other) {
        count_ = other.count_;
        std::copy_n(other.events_.begin(), count_, events_.begin());
        return *this;
    }
    ~Waits() = default;
    Waits(std::initializer_list<StreamEvent> events) {
        for (const StreamEvent& event : events) add(event);
    }
    void add(StreamEvent event) {  // std::logic_error beyond the capacity
        if (event.stream < 0 || event.sequence == 0) return;
        for (StreamEvent& own : std::span(events_.data(), count_)) {
            if (own.stream != event.stream) continue;
            own.sequence = std::max(own.sequence, event.sequence);
            return;
        }
        if (count_ == kCapacity) throw std::logic_error("an item waits for events of too many streams");
        events_[count_++] = event;
    }
    std::span<const StreamEvent> events() const { return {events_.data(), count_}; }
    bool empty() const { return count_ == 0; }

  private:
    std::array<StreamEvent, kCapacity> events_;
    std::size_t count_ = 0;
};

}  // namespace shardscope::trainer::device
