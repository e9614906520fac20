// Every allocation with its lifetime. Columns, as in a trace: times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

inline constexpr std::int64_t kNeverFreed = std::numeric_limits<std::int64_t>::max();

// In time order.
struct Allocations {
    std::vector<std::uint32_t> row;      // row of Trace::memory, with size, category, address and the rest
    std::vector<std::int64_t> freed_ns;  // when the next row of its address came; kNeverFreed: not freed
    std::size_t size() const { return row.size(); }
};

// The allocations, in every memory space, that were live at any instant of the selected time; for selected
// steps, the time between their host starts and ends. An address is live if its latest row is an allocation,
// as in memory_report(); addresses are distinguished by rank and space.
Allocations find_allocations(const Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces
