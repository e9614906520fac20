// Finds the time at which a rank's allocated memory is largest, and what is live then: shared by the memory
// analyses. Internal to the library. Rows are indices into Trace::memory; times in nanoseconds, sizes in
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/memory.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct MemoryEvents;
}

namespace shardscope::traces::analysis {

// The states of a rank's rows that are searched: after rows [first, last), and before row `first`.
struct PeakRange {
    std::size_t first = 0, last = 0;
    std::int64_t start = 0;  // the latest time at which the state before row `first` applied
    bool initial = false;    // include that state
    bool latest = false;     // of several equal peaks, the latest counts
};

struct Peak {
    std::size_t rows = 0;  // number of the rank's rows up to the peak
    bool initial = false;  // the peak is the initial state of the range
    std::int64_t time = 0;
    std::int64_t total = 0;
    CategoryBytes bytes{};
};

// Each rank's rows (by index into Trace::ranks) of Trace::memory in one space, in order. For a rank with
// several devices only those of the device with the highest peak in the selected time, since a peak is that
// of one device.
std::vector<std::vector<std::uint32_t>> rows_by_rank(const store::Trace& trace, schema::MemorySpace space,
                                                     const TraceSteps& steps, const Selection& selection);

// By row of Trace::memory: whether the row counts in its rank's curve, because its device has the rank's
// highest peak in the whole trace; empty if all rows count.
std::vector<bool> rows_of_fullest_devices(const store::Trace& trace);

// Number of devices on which a rank allocated.
int memory_devices(const store::Trace& trace, store::RankIndex rank);

// The time that memory_report() covers; `rows` are the rank's.
PeakRange peak_range(const store::Trace& trace, const std::vector<std::uint32_t>& rows,
                     const RankSteps& steps, const Selection& selection);

Peak find_peak(const store::MemoryEvents& memory, const std::vector<std::uint32_t>& rows,
               const PeakRange& range);

// Rows of the allocations that are live after the first `count` rows: an address is live if its latest row is
// an allocation.
std::vector<std::uint32_t> live_rows(const store::MemoryEvents& memory,
                                     const std::vector<std::uint32_t>& rows, std::size_t count);

// Whether the bytes count until the last stream has used them (memory_facts.h).
bool counts_active(const store::Trace& trace);

// Whether the whole time is selected.
inline bool selects_whole_time(const Selection& s) {
    return !s.first_step && !s.last_step && !s.from_ns && !s.to_ns;
}

}  // namespace shardscope::traces::analysis
