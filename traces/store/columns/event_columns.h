// An event of a trace of any kind, and what all kinds have: a time, a name, a rank, found in the columns of
// their kind. Pure; any thread. Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

enum class EventKind : std::uint8_t { none, device, range, runtime, wait, mark };

// An index into DeviceEvents, HostRanges, RuntimeCalls, Synchronizations or Marks.
struct EventRef {
    EventKind kind = EventKind::none;
    std::int64_t index = -1;
    bool operator==(const EventRef&) const = default;
};

// f() of the columns that hold events of this kind; a default value for `none`.
template <class F>
auto with_columns(const Trace& trace, EventKind kind, const F& f) -> decltype(f(trace.device)) {
    switch (kind) {
        case EventKind::device:
            return f(trace.device);
        case EventKind::range:
            return f(trace.ranges);
        case EventKind::runtime:
            return f(trace.runtime);
        case EventKind::wait:
            return f(trace.synchronizations);
        case EventKind::mark:
            return f(trace.marks);
        case EventKind::none:
            break;
    }
    return {};
}

struct EventTime {
    std::int64_t start = 0, end = 0;
};
inline EventTime time_of(const Trace& trace, EventRef event) {
    const auto i = static_cast<std::size_t>(event.index);
    return with_columns(trace, event.kind, [i](const auto& events) {
        if constexpr (requires { events.time; }) {
            return EventTime{events.time[i], events.time[i]};
        } else {
            return EventTime{events.start[i], events.end[i]};
        }
    });
}

// Empty for a kind without names.
inline schema::StringId name_id_of(const Trace& trace, EventRef event) {
    const auto i = static_cast<std::size_t>(event.index);
    return with_columns(trace, event.kind, [i](const auto& events) {
        if constexpr (requires { events.name; }) {
            return events.name[i];
        } else {
            return schema::StringId::empty;
        }
    });
}

inline RankIndex rank_of(const Trace& trace, EventRef event) {
    const auto i = static_cast<std::size_t>(event.index);
    if (event.kind == EventKind::none) return {};
    return with_columns(trace, event.kind, [&trace, i](const auto& events) -> RankIndex {
        if constexpr (requires { events.thread; }) {
            if (events.thread[i] >= trace.threads.size()) return {};
            return trace.threads[events.thread[i]].rank;
        } else {
            return RankIndex(events.rank[i]);
        }
    });
}

// Events of any kinds in order of start, four bytes each.
class EventList {
  public:
    static constexpr std::size_t kMostOfKind = (std::size_t{1} << 29) - 1;  // the largest index of an event

    std::size_t size() const { return events_.size(); }
    EventRef event(std::size_t i) const { return unpacked(events_[i]); }
    // Events of one kind must be added in order of start; merge_from() then puts those that were added since
    // there were `size` of them into the order of all.
    void add(EventRef event) {
        events_.push_back(static_cast<std::uint32_t>(event.kind) << kKindShift |
                          static_cast<std::uint32_t>(event.index));
    }
    void merge_from(const Trace& trace, std::size_t size);

    // The first that starts after `time`, or at `time` but later in the list than `current`; wraps around.
    std::optional<std::size_t> after(const Trace& trace, EventRef current, std::int64_t time) const;
    std::optional<std::size_t> before(const Trace& trace, EventRef current, std::int64_t time) const;
    std::optional<std::size_t> place_of(const Trace& trace, EventRef event) const;

  private:
    // The first that starts at or after `time`; size() if there is none.
    std::size_t first_from(const Trace& trace, std::int64_t time) const;
    static constexpr int kKindShift = 29;
    static EventRef unpacked(std::uint32_t packed) {
        return {static_cast<EventKind>(packed >> kKindShift),
                static_cast<std::int64_t>(packed & kMostOfKind)};
    }
    std::vector<std::uint32_t> events_;
};

}  // namespace shardscope::traces::store
