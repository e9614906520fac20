// The Memory panel's sentences about a peak. Pure text from analysis results, no drawing; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "traces/analysis/memory/memory.h"
#include "traces/store/columns/trace.h"

namespace shardscope::viewer::panels {

// "in step 2, 12.3 ms after its start", or "at 1.2 s" outside every step.
std::string moment(const traces::store::Trace& trace, traces::store::RankIndex rank, std::int64_t time);

// "Predicted 85.98 MiB, exact (where)."; for a run of ours without one, that none is stored; empty for
// foreign traces.
std::string prediction(const traces::store::Trace& trace, const traces::analysis::RankMemory& memory);

// What was reserved, pinned and allocated on the host, two blanks before each sentence; empty: not recorded.
std::string other_facts(const traces::analysis::RankMemory& memory);

// The shift of the other run's times (ns) that aligns the starts of the first step that both have.
std::int64_t alignment(const traces::store::Trace& here, traces::store::RankIndex here_rank,
                       const traces::store::Trace& there, traces::store::RankIndex there_rank);

}  // namespace shardscope::viewer::panels
