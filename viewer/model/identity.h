// Which trace a file holds, by its content: the same on every machine, whatever the file's name and times.
// Any thread. No Dear ImGui.
#pragma once

#include <cstdint>
#include <string>

#include "viewer/model/place.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::viewer::model {

struct TraceIdentity {
    std::string run;      // of the run's start and processes: stays while the trace grows
    std::string content;  // of the numbers of events and a sample of them
    std::int64_t events = 0;
    bool operator==(const TraceIdentity&) const = default;
};

template <IsOrIsConst<TraceIdentity> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [run, content, events] = value;
    visit("run", run);
    visit("content", content);
    visit("events", events);
}

// Reads a few thousand events, however long the trace is.
TraceIdentity identity_of(const traces::store::Trace& trace);

}  // namespace shardscope::viewer::model
