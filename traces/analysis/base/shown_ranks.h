// A simulated run's trace may show a few ranks in full that stand for all: who looks at it should know.
#pragma once

#include <string>
#include <vector>

#include "traces/store/columns/trace.h"

namespace shardscope::traces {

// Ranks of the run: by its configuration, at least those that the trace shows.
int ranks_of_run(const Trace& trace);

// A simulated run of more ranks than the trace shows; one of each kind is among them.
bool shows_some_ranks(const Trace& trace);

// "8 of the 1,024 ranks that were simulated are shown; the others did the same"; empty where all are shown.
std::string shown_ranks_sentence(const Trace& trace);

// What each shown rank stands for, one sentence each: "As rank 0 did: 1024 of 1024 ranks: peak ..."; none of
// a run that was not simulated.
std::vector<std::string> ranks_like_it(const Trace& trace);

}  // namespace shardscope::traces
