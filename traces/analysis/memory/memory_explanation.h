// Explains memory: the results of memory_report() with the moment of the peak, the peak of each step, and the
// allocated bytes compared with those that streams still used and those that the pool held. Definition:
// docs/definitions.md, "Memory".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/analysis/memory/memory.h"

namespace shardscope::traces::analysis {

// The allocation that reached the peak.
struct PeakMoment {
    std::optional<std::int64_t> step;  // the step of the rank's host thread; none: outside all steps
    schema::Phase phase = schema::Phase::none;
    // Of that allocation; empty if they are unknown, or if the peak was reached before the selected time.
    std::string buffer, unit, module;
    std::string annotation, stack;  // of that allocation, if recorded
    std::int64_t bytes = 0;         // of that allocation; 0 if there was none
};

struct StepMemory {
    std::int64_t step = 0;
    std::int64_t peak_bytes = 0;                 // maximum allocated while the host thread was in the step
    std::optional<std::int64_t> active_bytes;    // maximum that streams still used then; none: not recorded
    std::optional<std::int64_t> reserved_bytes;  // maximum that the pool held then; none: not recorded
    std::optional<std::int64_t> predicted;       // the memory account's peak of the step; none: not stored
    std::int64_t growths = 0;                    // how often the pool grew in the step

    MemoryPart part(std::string name) const { return {std::move(name), peak_bytes, peak_bytes, predicted}; }
};

// Allocated (in the host program's order), active (until the last stream has used it) and reserved (held by
// the caching allocator) device memory.
struct PoolMemory {
    std::optional<std::int64_t> allocated_peak_bytes;     // if the memory events contain active bytes
    std::optional<std::int64_t> active_peak_bytes;        // none: "active_bytes" was not recorded
    std::optional<std::int64_t> reserved_peak_bytes;      // none: "reserved_bytes" was not recorded
    std::int64_t reserved_at_peak = 0;                    // while allocated is at its peak
    std::int64_t cached_at_peak = 0;                      // of that: beyond the allocated bytes
    std::int64_t allocated_at_reserved_peak = 0;          // maximum allocated while reserved is at its peak
    std::optional<std::int64_t> active_at_reserved_peak;  // maximum active while reserved is at its peak
    double fragmentation_percent = 0;   // 100 (reserved peak - allocated at it) / reserved peak; 0 unknown
    std::int64_t growths = 0;           // calls of cudaMalloc in the selected time
    std::int64_t growths_in_steps = 0;  // those while the host thread was in a step
};

struct RankExplanation {
    RankMemory memory;
    PeakMoment moment;
    std::vector<StepMemory> steps;  // in order; empty if the trace has no steps
    PoolMemory pool;
};

struct MemoryExplanation {
    std::vector<RankExplanation> ranks;
};

// The selection has the same meaning as in memory_report(); the steps are the selected ones, each clipped to
// the selected time. If nothing is selected, reserved memory includes the set-up: the pool keeps what the
// set-up made it reserve.
MemoryExplanation explain_memory(const store::Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces::analysis
