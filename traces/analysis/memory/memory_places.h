// What a peak holds by annotation and by stack, how the allocator's memory lies there, and what could not be
// allocated: the parts of memory_report() that only foreign traces tell. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/peak_search.h"

namespace shardscope::traces {

// Where bytes count until their last use a peak lasts: the time of the last thing that the allocator did
// before it fell. Elsewhere when it was reached.
std::int64_t moment_of(const Trace& trace, int rank_index, const std::vector<std::uint32_t>& rows,
                       const Peak& peak);

// Fills annotations, stacks, fragmentation and until_last_use of `result`. `live`: the rows that live at
// `peak`.
void add_places(const Trace& trace, int rank_index, const Peak& peak, const std::vector<std::uint32_t>& live,
                RankMemory& result);

// Of a rank's rows. None where a step ends with no more than the one before, there are fewer than three
// steps, or the growth is below a hundredth of what lives at the last one's end.
std::optional<MemoryGrowth> growth_of(const Trace& trace, int rank_index,
                                      const std::vector<std::uint32_t>& rows, const RankSteps& steps,
                                      const Selection& selection);

// Of the rank with that number, in the selected time.
std::vector<MemoryFailure> failures_of(const Trace& trace, int rank, const RankSteps& steps,
                                       const Selection& selection);

}  // namespace shardscope::traces
