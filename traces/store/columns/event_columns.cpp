// See event_columns.h.
#include "traces/store/columns/event_columns.h"

#include <algorithm>

namespace shardscope::traces::store {

void EventList::merge_from(const Trace& trace, std::size_t size) {
    std::inplace_merge(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(size), events_.end(),
                       [&](std::uint32_t a, std::uint32_t b) {
                           return time_of(trace, unpacked(a)).start < time_of(trace, unpacked(b)).start;
                       });
}

std::size_t EventList::first_from(const Trace& trace, std::int64_t time) const {
    const auto at = std::partition_point(events_.begin(), events_.end(), [&](std::uint32_t packed) {
        return time_of(trace, unpacked(packed)).start < time;
    });
    return static_cast<std::size_t>(at - events_.begin());
}

std::optional<std::size_t> EventList::place_of(const Trace& trace, EventRef wanted) const {
    if (wanted.kind == EventKind::none) return std::nullopt;
    const std::int64_t start = time_of(trace, wanted).start;
    for (std::size_t at = first_from(trace, start); at < size() && time_of(trace, event(at)).start == start;
         ++at) {
        if (event(at) == wanted) return at;
    }
    return std::nullopt;
}

std::optional<std::size_t> EventList::after(const Trace& trace, EventRef current, std::int64_t time) const {
    if (size() == 0) return std::nullopt;
    if (const auto at = place_of(trace, current)) return (*at + 1) % size();
    return first_from(trace, time) % size();
}

std::optional<std::size_t> EventList::before(const Trace& trace, EventRef current, std::int64_t time) const {
    const auto next = after(trace, current, time);
    if (!next) return std::nullopt;
    // For an event in the list, two before the one after it; else the one before the first after `time`.
    const std::size_t back = place_of(trace, current) ? 2 : 1;
    return (*next + size() * 2 - back) % size();
}

}  // namespace shardscope::traces::store
