// Every allocation with its purpose and lifetime. Sizes in bytes, times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

// Texts live as long as the trace; empty if not recorded.
struct AllocationDetail {
    std::int64_t time = 0, bytes = 0;
    std::optional<std::int64_t> freed;  // none: not freed in the trace
    std::uint64_t address = 0;
    MemoryCategory category = MemoryCategory::other;
    MemorySpace space = MemorySpace::device;
    Phase phase = Phase::none;
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
    std::optional<MemorySpace> space;  // the requested space; none: all
    std::vector<RankAllocations> ranks;
};

// The allocations that were live at any instant of the selected time (find_allocations()). `space`: only
// those in this space. `most`: maximum per rank, 0 all.
AllocationsReport allocations_report(const Trace& trace, const Selection& selection = {},
                                     std::optional<MemorySpace> space = {}, std::size_t most = 0);

}  // namespace shardscope::traces
