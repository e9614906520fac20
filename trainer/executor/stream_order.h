// The order of a rank's streams, as seen by the host thread that walks a Plan: what each event slot holds,
// what the next item of each stream waits for, and the queues of the communicators. An Event is one that will
// happen (StreamEvent, in plan_walk.h) or the time at which it did (calibrate).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/device/stream_event.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::executor {

// Whether the first precedes all later work of the second's stream anyway. `last`: the stream's latest event.
inline bool precedes_without_wait(device::StreamEvent event, device::StreamEvent last) {
    return event.stream == last.stream;
}

// Event: when the work of a stream up to some item is done.
// Pending: the events that an item waits for, with add(Event) and empty().
template <class Event, class Pending>
class StreamOrder {
  public:
    // An in-order queue, as NCCL has: one for each communicator and direction.
    struct Queue {
        std::int64_t key = 0;
        Event last{};               // the latest collective
        std::int64_t sequence = 0;  // of the next one
    };

    void begin(const plan::Plan& plan) {
        events_.resize(std::max(events_.size(), static_cast<std::size_t>(plan.events)));
    }
    void end(const plan::Plan& plan) {
        for (const auto& [from, to] : plan.carry) event(to) = event(from);
    }

    Event& event(plan::EventId id) { return events_[static_cast<std::size_t>(id)]; }
    const std::array<Event, plan::kStreams>& last() const { return last_; }

    // wait_event.
    void wait(const plan::Op& op) { wait(op.stream, event(op.event())); }
    // record_event: the event happens when everything that is now in the stream is done, its waits included.
    // Waits that no item has taken yet are given to `mark`, which appends an item that does nothing else.
    template <class Mark>
    Event record(const plan::Op& op, const Mark& mark) {
        const auto s = static_cast<std::size_t>(op.stream);
        if (!waits_[s].empty()) last_[s] = mark(std::exchange(waits_[s], {}));
        return event(op.event()) = last_[s];
    }

    // An item of a stream: take_waits(), then started(); a collective's waits for its queue, too.
    Pending take_waits(plan::Stream stream) {
        return std::exchange(waits_[static_cast<std::size_t>(stream)], {});
    }
    Queue& queue(std::int64_t key, plan::Stream stream) {
        auto own = std::find_if(queues_.begin(), queues_.end(),
                                [&](const Queue& queue) { return queue.key == key; });
        if (own == queues_.end()) own = queues_.insert(own, {key, {}, 0});
        wait(stream, own->last);
        return *own;
    }
    void started(plan::Stream stream, Event event) { last_[static_cast<std::size_t>(stream)] = event; }

  private:
    void wait(plan::Stream stream, Event event) {
        const auto s = static_cast<std::size_t>(stream);
        if (!precedes_without_wait(event, last_[s])) waits_[s].add(event);
    }

    std::vector<Event> events_;                  // by event slot
    std::array<Event, plan::kStreams> last_{};   // latest item of each stream
    std::array<Pending, plan::kStreams> waits_;  // for the next item of each stream
    std::vector<Queue> queues_;                  // of a few groups and channels
};

}  // namespace shardscope::trainer::executor
