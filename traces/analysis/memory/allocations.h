// Every allocation with the time that it lived. Columns, as in a trace: times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

inline constexpr std::int64_t kNeverFreed = std::numeric_limits<std::int64_t>::max();

// In the order of their time.
struct Allocations {
    std::vector<std::uint32_t> row;      // of Trace::memory, which tells size, category, address and the rest
    std::vector<std::int64_t> freed_ns;  // when the next row of its address came; kNeverFreed: it lived on
    std::size_t size() const { return row.size(); }
};

// The allocations, in every space, that were live at any instant of the selected time: of a selection of
// steps between the host starts and ends of those. An address is live when its latest row is an allocation,
// as for memory_report(); addresses are told apart by rank and space.
Allocations find_allocations(const Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces
