// Finds an event of a trace in another trace that was read later from the same file. No Dear ImGui; pure.
#pragma once

#include "traces/store/columns/trace.h"
#include "viewer/model/session.h"

namespace shardscope::viewer {

// The event of the same kind, rank, start, end and name; none if there is none (an event that had not ended
// has another end now: then the start decides).
SelectedEvent same_event(const traces::Trace& before, SelectedEvent event, const traces::Trace& now);

}  // namespace shardscope::viewer
