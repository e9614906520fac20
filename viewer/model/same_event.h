// An event by what stays the same when its trace is read again: found in a trace that was read later from the
// same file, or from a copy of it on another machine. No Dear ImGui; pure.
#pragma once

#include "traces/store/columns/trace.h"
#include "viewer/model/place.h"

namespace shardscope::viewer::model {

EventPlace place_of(const traces::store::Trace& trace, traces::store::EventRef event);

// The event of the same kind and start and, where the kind has them, the same name, rank, depth or
// correlation; none if there is none. Ends may differ: an event may have ended only since.
traces::store::EventRef event_at(const traces::store::Trace& trace, const EventPlace& place);

inline traces::store::EventRef same_event(const traces::store::Trace& before, traces::store::EventRef event,
                                          const traces::store::Trace& now) {
    return event_at(now, place_of(before, event));
}

}  // namespace shardscope::viewer::model
