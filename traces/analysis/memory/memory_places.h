// The peak by annotation and by stack, the state of the allocator's memory at the peak, and failed
// allocations: the parts of memory_report() that only foreign traces have. Internal to the library.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/peak_search.h"

namespace shardscope::traces {

// If bytes count until their last use, a peak lasts: the time of the allocator's last action before it fell.
// Otherwise the time when it was reached.
std::int64_t moment_of(const Trace& trace, int rank_index, const std::vector<std::uint32_t>& rows,
                       const Peak& peak);

// Sets annotations, stacks, fragmentation and until_last_use of `result`. `live`: the rows that are live at
// `peak`.
void add_places(const Trace& trace, int rank_index, const Peak& peak, const std::vector<std::uint32_t>& live,
                RankMemory& result);

// The growth in a rank's rows. None if a step ends with no more than the previous one, if there are fewer
// than three steps, or if the growth is below a hundredth of what is live at the end of the last one.
std::optional<MemoryGrowth> growth_of(const Trace& trace, int rank_index,
                                      const std::vector<std::uint32_t>& rows, const RankSteps& steps,
                                      const Selection& selection);

// Failures of the rank with that number in the selected time.
std::vector<MemoryFailure> failures_of(const Trace& trace, int rank, const RankSteps& steps,
                                       const Selection& selection);

}  // namespace shardscope::traces
