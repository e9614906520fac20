// How many rows of each kind a trace holds in a selected part of it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

// Which memory events their source recorded. The others were put in on loading, so that the totals are the
// allocator's (memory_facts.h); they are no rows of the trace.
std::vector<bool> recorded_memory_events(const Trace& trace);

// The counts of trace_info(), under the same names in the same order, of what is selected. A device event
// counts by the step that launched it and by its start; a host range, call, counter value or allocation by
// its rank and its start in the steps' host time; a step, stream or thread by its rank and number. What is of
// the run as a whole (modules, units, diagnostics, invalid events) is never left out.
std::vector<std::pair<std::string, std::int64_t>> row_counts(const Trace& trace,
                                                             const Selection& selection = {});

}  // namespace shardscope::traces
