// The trace of a simulated run may show a few ranks in full that represent all ranks; its users should know.
#pragma once

#include <string>
#include <vector>

#include "traces/store/columns/trace.h"

namespace shardscope::traces {

// Number of ranks of the run by its configuration, but at least those that the trace shows.
int ranks_of_run(const Trace& trace);

// Whether a simulated run has more ranks than the trace shows; one of each kind is shown.
bool shows_some_ranks(const Trace& trace);

// "8 of the 1,024 ranks that were simulated are shown; the others did the same"; empty where all are shown.
std::string shown_ranks_sentence(const Trace& trace);

// Which ranks each shown rank represents, one sentence each: "As rank 0 did: 1024 of 1024 ranks: peak ...";
// empty for a run that was not simulated.
std::vector<std::string> ranks_like_it(const Trace& trace);

}  // namespace shardscope::traces
