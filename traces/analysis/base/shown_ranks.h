// The trace of a simulated run may contain only a few ranks, which represent all. These functions report
// that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

// A simulation stores sim.ranks_as_rank_0 = "1024 of 1024 ranks: peak ..." for each kind of rank.
inline constexpr std::string_view kRanksLikeIt = "sim.ranks_as_rank_";

// Number of ranks of the run according to its configuration; at least the number that the trace shows.
int ranks_of_run(const store::Trace& trace);

// Whether a simulated run has more ranks than the trace shows; one of each kind is shown.
bool shows_some_ranks(const store::Trace& trace);

// "8 of the 1,024 ranks that were simulated are shown in full: ..."; empty if all are shown.
std::string shown_ranks_sentence(const store::Trace& trace);

// Which ranks each shown rank represents, one sentence each: "Rank 0 represents 1,024 of 1,024 ranks: peak
// ..."; empty for a run that was not simulated.
std::vector<std::string> ranks_like_it(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
