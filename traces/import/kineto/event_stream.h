// A Chrome trace from front to back: the members of its object to EventHandler::metadata, its events to
// EventHandler::event, in the file's order. Whole batches go through simdjson; what that refuses is read one
// event at a time and forgivingly (json_scan.h). Holds a few MiB of the file, more only where one value is
// larger.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/import/input/input.h"
#include "traces/import/kineto/trace_event.h"

namespace shardscope::traces {

struct EventStreamResult {
    std::uint64_t events = 0;
    JsonRepairs repairs;
    std::uint64_t lost_metadata = 0;  // members around traceEvents that could not be read
    // With `partial`: what could not be read, and where the first of it stands.
    std::uint64_t lost_places = 0, first_lost = 0;
    bool cut = false;            // the file ends before it should
    std::uint64_t searched = 0;  // bytes that were looked through for batches, some of them several times
    // What tells whether it is a trace at all.
    bool has_list = false;                            // the bare list, or "traceEvents" with one
    bool any_element = false, first_is_list = false;  // of it
    std::vector<std::string> keys;                    // the first ones up to "traceEvents"
};

// Throws StoreError where the file is damaged and not `partial`; what the handler throws passes through.
EventStreamResult read_event_stream(Input& input, EventHandler& handler, bool partial);

}  // namespace shardscope::traces
