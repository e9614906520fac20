// Every allocation with its lifetime. Columns, as in a trace: times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

inline constexpr std::int64_t kNeverFreed = std::numeric_limits<std::int64_t>::max();

// In time order.
struct Allocations {
    std::vector<std::uint32_t> row;      // row of Trace::memory, with size, category, address and the rest
    std::vector<std::int64_t> freed_ns;  // the time of the next row with its address; kNeverFreed: not freed
    std::size_t size() const { return row.size(); }
};

// The allocations, in every memory space, that were live at any instant of the selected time; for selected
// steps, the time between their host starts and ends. An address is live if its latest row is an allocation,
// as in memory_report(); addresses are distinguished by rank and space.
Allocations find_allocations(const store::Trace& trace, const Selection& selection = {});

// Texts live as long as the trace; empty if not recorded.
struct AllocationDetail {
    std::int64_t time = 0, bytes = 0;
    std::optional<std::int64_t> freed;  // none: not freed in the trace
    std::uint64_t address = 0;
    schema::MemoryCategory category = schema::MemoryCategory::other;
    schema::MemorySpace space = schema::MemorySpace::device;
    schema::Phase phase = schema::Phase::none;
    std::string_view unit, module, name, annotation;
    std::string_view stack;  // frames, innermost first, one per line; see store/stack_text.h
};

Fields<AllocationDetail> allocation_fields();

struct RankAllocations {
    int rank = 0;
    std::int64_t count = 0, bytes = 0;          // of all, including those beyond `most`
    std::vector<AllocationDetail> allocations;  // largest first, then earliest first
};

struct AllocationsReport {
    std::optional<schema::MemorySpace> space;  // the requested space; none: all
    std::vector<RankAllocations> ranks;
};

// The allocations that were live at any instant of the selected time (find_allocations()). `space`: only
// those in this space. `most`: maximum per rank, 0 all.
AllocationsReport allocations_report(const store::Trace& trace, const Selection& selection = {},
                                     std::optional<schema::MemorySpace> space = {}, std::size_t most = 0);

}  // namespace shardscope::traces::analysis
