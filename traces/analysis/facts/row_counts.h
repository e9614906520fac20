// How many rows of each kind the selected part of a trace has.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

// Which memory events their source recorded. The others were added on loading, so that the totals are the
// allocator's (memory_facts.h); they are not rows of the trace.
std::vector<bool> recorded_memory_events(const Trace& trace);

// The counts of trace_info() for the selection, under the same names in the same order. A device event counts
// by the step that launched it and by its start; a host range, call, counter value or allocation by its rank
// and its start in the steps' host time; a step, stream or thread by its rank and number. Data of the run as
// a whole (modules, units, diagnostics, invalid events) is always included.
std::vector<std::pair<std::string, std::int64_t>> row_counts(const Trace& trace,
                                                             const Selection& selection = {});

}  // namespace shardscope::traces
