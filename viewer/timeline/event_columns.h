// What all kinds of events have: a time, a name, a rank, found in the columns of their kind. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "viewer/model/session.h"

namespace shardscope::viewer::timeline {

// f() of the columns that hold events of this kind; a default value for `none`.
template <class F>
auto with_columns(const traces::store::Trace& trace, model::EventKind kind, const F& f)
    -> decltype(f(trace.device)) {
    switch (kind) {
        case model::EventKind::device:
            return f(trace.device);
        case model::EventKind::range:
            return f(trace.ranges);
        case model::EventKind::runtime:
            return f(trace.runtime);
        case model::EventKind::wait:
            return f(trace.synchronizations);
        case model::EventKind::mark:
            return f(trace.marks);
        case model::EventKind::none:
            break;
    }
    return {};
}

struct EventTime {
    std::int64_t start = 0, end = 0;
};
inline EventTime time_of(const traces::store::Trace& trace, model::SelectedEvent event) {
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
inline traces::schema::StringId name_id_of(const traces::store::Trace& trace, model::SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    return with_columns(trace, event.kind, [i](const auto& events) {
        if constexpr (requires { events.name; }) {
            return events.name[i];
        } else {
            return traces::schema::StringId::empty;
        }
    });
}

inline traces::store::RankIndex rank_of(const traces::store::Trace& trace, model::SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    if (event.kind == model::EventKind::none) return {};
    return with_columns(trace, event.kind, [&trace, i](const auto& events) -> traces::store::RankIndex {
        if constexpr (requires { events.thread; }) {
            if (events.thread[i] >= trace.threads.size()) return {};
            return trace.threads[events.thread[i]].rank;
        } else {
            return traces::store::RankIndex(events.rank[i]);
        }
    });
}

}  // namespace shardscope::viewer::timeline
