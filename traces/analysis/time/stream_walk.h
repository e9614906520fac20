// Follows the events of one stream, or of all streams of a device as if they were one, in order of start: its
// gaps and their kinds, its launches, its queue. Internal to the library. Definition: docs/definitions.md,
// "Idle, launch, queue". Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "traces/analysis/time/idle.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

class StreamWalk {
  public:
    // Called with the counted part of each gap, and the event that ends it.
    using OnGap = std::function<void(GapKind kind, std::int64_t from, std::int64_t to, std::size_t event)>;

    // `from`: start of the selected time.
    StreamWalk(const store::Trace& trace, std::int64_t from, std::int64_t kernel_wait, OnGap on_gap = {})
        : trace_(trace), from_(from), kernel_wait_(kernel_wait), on_gap_(std::move(on_gap)) {}

    // Events must be added in order of start. An event that does not count still keeps the stream busy.
    void add(std::size_t event, bool counts);

    StreamIdle finish();  // must be called once

    // After finish(): values of the events that count and have a launch. Launches and starts are each sorted:
    // a launch makes the queue one longer, a start one shorter.
    const std::vector<std::int64_t>& delays() const { return delays_; }
    const std::vector<std::int64_t>& launches() const { return launches_; }
    const std::vector<std::int64_t>& starts() const { return starts_; }

  private:
    void add_gap(std::size_t event, std::int64_t start, bool host_was_late);
    void add_launch(std::int64_t start, std::int64_t call_start, std::int64_t call_end);
    void finish_launches();
    void finish_queue();

    static constexpr std::int64_t kBefore = std::numeric_limits<std::int64_t>::min();
    const store::Trace& trace_;
    std::int64_t from_, kernel_wait_;
    OnGap on_gap_;
    std::int64_t latest_end_ = kBefore;
    std::vector<std::int64_t> delays_, launches_, starts_;
    StreamIdle result_;
};

// Device events of each stream, in order of start; those of stream s begin at `first[s]`.
struct EventsByStream {
    std::vector<std::uint32_t> events;
    std::vector<std::size_t> first;
};
EventsByStream events_by_stream(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
