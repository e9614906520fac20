// Joins traces of one job, each in columns, into one: ranks side by side, times on one clock. A pure function
// of columns, n log n in the events.
#pragma once

#include <memory>
#include <vector>

#include "traces/merge/part_clocks.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::importer {

// Wall clock, host and the collectives of each trace, for align_clocks().
std::vector<merge::PartClock> clocks_of(const std::vector<std::unique_ptr<store::Trace>>& parts);

// `parts`: two or more. Throws StoreError if two of them have the same rank number (it names both files),
// or if there are more threads, ranks or streams than a column can index.
std::unique_ptr<store::Trace> join_traces(std::vector<std::unique_ptr<store::Trace>> parts);

}  // namespace shardscope::traces::importer
