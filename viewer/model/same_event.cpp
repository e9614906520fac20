// See same_event.h. In the newer file a row may have another index (a rank that wrote later), but its start,
// name and place are the same.
#include "viewer/model/same_event.h"

#include <cstddef>
#include <cstdint>

namespace shardscope::viewer::model {
namespace {

using traces::store::EventRef;

int rank_number(const traces::store::Trace& trace, EventRef event) {
    const traces::store::RankIndex rank = rank_of(trace, event);
    return rank.known() && rank.at() < trace.ranks.size() ? trace.ranks[rank.at()].number : -1;
}

std::int64_t detail_of(const traces::store::Trace& trace, EventRef event) {
    const auto i = static_cast<std::size_t>(event.index);
    return with_columns(trace, event.kind, [i](const auto& events) -> std::int64_t {
        if constexpr (requires { events.copy_kind; }) {
            return static_cast<std::int64_t>(events.kind[i]);
        } else if constexpr (requires { events.depth; }) {
            return events.depth[i];
        } else if constexpr (requires { events.correlation; }) {
            return events.correlation[i];
        } else {
            return 0;
        }
    });
}

std::int64_t count_of(const traces::store::Trace& trace, EventKind kind) {
    return with_columns(trace, kind,
                        [](const auto& events) { return static_cast<std::int64_t>(events.size()); });
}

}  // namespace

EventPlace place_of(const traces::store::Trace& trace, EventRef event) {
    if (event.kind == EventKind::none || event.index < 0 || event.index >= count_of(trace, event.kind))
        return {};
    return {event.kind, time_of(trace, event).start, std::string(trace.strings[name_id_of(trace, event)]),
            rank_number(trace, event), detail_of(trace, event)};
}

EventRef event_at(const traces::store::Trace& trace, const EventPlace& place) {
    for (EventRef event{place.kind, 0}; event.index < count_of(trace, place.kind); ++event.index) {
        if (time_of(trace, event).start == place.start && detail_of(trace, event) == place.detail &&
            trace.strings[name_id_of(trace, event)] == place.name && rank_number(trace, event) == place.rank)
            return event;
    }
    return {};
}

}  // namespace shardscope::viewer::model
