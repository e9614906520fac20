// What a trace's events wait for, made once in the background for every panel that asks.
#pragma once

#include <memory>

#include "traces/analysis/waits/wait_names.h"
#include "viewer/model/session.h"

namespace shardscope::viewer::model {

// nullptr while it is being computed.
inline std::shared_ptr<const traces::analysis::TraceWaits> waits_of(Session& session, const TracePtr& trace) {
    return session.analyses.get<traces::analysis::TraceWaits>(
        "waits", {trace}, [](const auto& t) { return traces::analysis::TraceWaits(*t.front()); });
}

}  // namespace shardscope::viewer::model
