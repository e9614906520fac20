// Reads a Chrome trace from front to back: passes the members of its object to EventHandler::metadata and its
// events to EventHandler::event, in the file's order. Whole batches go through simdjson; what it refuses is
// read one event at a time by a tolerant scanner (json_scan.h). Holds a few MiB of the file, more only if one
// value is larger.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/import/input/input.h"
#include "traces/import/kineto/trace_event.h"

namespace shardscope::traces::importer {

struct EventStreamResult {
    std::uint64_t events = 0;
    JsonRepairs repairs;
    std::uint64_t lost_metadata = 0;  // members around traceEvents that could not be read
    // With `partial`: the number of places that could not be read, and the offset of the first one.
    std::uint64_t lost_places = 0, first_lost = 0;
    bool cut = false;            // the file ends too early
    std::uint64_t searched = 0;  // bytes that were searched for batches, some of them several times
    // Evidence of whether the file is a trace at all.
    bool has_list = false;                            // the bare list, or "traceEvents" with one
    bool any_element = false, first_is_list = false;  // of that list
    std::vector<std::string> keys;                    // the first ones up to "traceEvents"
};

// Throws StoreError if the file is damaged and not `partial`; exceptions of the handler pass through.
EventStreamResult read_event_stream(Input& input, EventHandler& handler, bool partial);

}  // namespace shardscope::traces::importer
