// Finds an event of a trace in another trace that was read later from the same file. No Dear ImGui; pure.
#pragma once

#include "traces/store/columns/trace.h"
#include "viewer/model/session.h"

namespace shardscope::viewer::model {

// The event of the same kind and start and, where the kind has them, the same name, rank, depth or
// correlation; none if there is none. Ends may differ: an event may have ended only since.
SelectedEvent same_event(const traces::store::Trace& before, SelectedEvent event,
                         const traces::store::Trace& now);

}  // namespace shardscope::viewer::model
