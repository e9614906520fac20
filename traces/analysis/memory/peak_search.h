// Where a rank's allocated memory is largest, and what lives there: shared by the memory analyses. Internal
// to the room. Rows are indices into Trace::memory; times in nanoseconds, sizes in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/memory.h"

namespace shardscope::traces {

struct MemoryEvents;

// Where in a rank's rows the peak is looked for: the states after rows [first, last), and before row `first`.
struct PeakRange {
    std::size_t first = 0, last = 0;
    std::int64_t start = 0;  // when the state before row `first` held, at the latest
    bool initial = false;    // that state counts too
    bool latest = false;     // of several equal peaks the latest counts
};

struct Peak {
    std::size_t rows = 0;  // how many of the rank's rows had happened
    bool initial = false;  // it is the state that the range began with
    std::int64_t time = 0;
    std::int64_t total = 0;
    CategoryBytes bytes{};
};

// Each rank's rows (by index into Trace::ranks) of Trace::memory in one space, in order. Of a rank with
// several devices those of the one whose peak in the selected time is highest: a peak is one device's.
std::vector<std::vector<std::uint32_t>> rows_by_rank(const Trace& trace, MemorySpace space,
                                                     const TraceSteps& steps, const Selection& selection);

// By row of Trace::memory: whether it counts in its rank's curve, being of the one device of several whose
// peak in the whole trace is highest; empty where all rows do.
std::vector<bool> rows_of_fullest_devices(const Trace& trace);

// On how many of its devices a rank allocated.
int memory_devices(const Trace& trace, int rank_index);

// What memory_report() says about the time it looks at; `rows` are the rank's.
PeakRange peak_range(const Trace& trace, const std::vector<std::uint32_t>& rows, const RankSteps& steps,
                     const Selection& selection);

Peak find_peak(const MemoryEvents& memory, const std::vector<std::uint32_t>& rows, const PeakRange& range);

// Rows of the allocations that live after the first `count` rows: an address is live when its latest row is
// an allocation.
std::vector<std::uint32_t> live_rows(const MemoryEvents& memory, const std::vector<std::uint32_t>& rows,
                                     std::size_t count);

// Whether the bytes count until the last stream has used them (memory_facts.h).
bool counts_active(const Trace& trace);

// No part of the time is left out.
inline bool selects_whole_time(const Selection& s) {
    return !s.first_step && !s.last_step && !s.from_ns && !s.to_ns;
}

}  // namespace shardscope::traces
