// All fields of an event, for the pane below the timeline: those of details.h, and those that need more than
// the event's own row: its launch, the waiting and the transfer of its collective, what it waited for and why
// it is exposed, its FSDP unit and phase, and other values from the source. Pure text; any thread.
#pragma once

#include <memory>

#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/analysis/waits/wait_names.h"
#include "traces/store/columns/trace.h"
#include "viewer/timeline/details.h"
#include "viewer/timeline/links.h"

namespace shardscope::viewer::timeline {

// nullptr: not computed yet; the fields that need it are omitted.
struct FieldSources {
    const CollectiveIndex* collectives = nullptr;
    const traces::analysis::UnitRanges* units = nullptr;
    const traces::analysis::TraceWaits* waits = nullptr;
};

// Bandwidths are those of nccl-tests: algorithm bandwidth = bytes of the full buffer / time, bus bandwidth =
// that times bus_factor(operation, ranks). Launch delay: docs/definitions.md, "Idle, launch, queue". Wait and
// transfer: "Distributed" (the transfer is the shortest duration among the ranks, the rest is waiting).
// Exposed, its cause, what was waited for: "Waits".
EventDetails all_fields(const traces::store::Trace& trace, model::SelectedEvent event,
                        const FieldSources& sources);

// The title and a line "label: value" for each field, for copying.
std::string fields_text(const EventDetails& details);

}  // namespace shardscope::viewer::timeline
