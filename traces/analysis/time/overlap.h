// How much of the communication ran beside compute. Definition: docs/definitions.md, "Overlap". Times in
// nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

// With K the union of compute kernels and C that of communication, within a time W:
struct OverlapParts {
    std::int64_t computation = 0;            // |K \ C|
    std::int64_t overlapped = 0;             // |K and C|
    std::int64_t exposed_communication = 0;  // |C \ K|
    std::int64_t other = 0;                  // |W| - |K or C|: copies and idleness
    std::int64_t whole() const { return computation + overlapped + exposed_communication + other; }  // |W|
    std::int64_t communication() const { return overlapped + exposed_communication; }                // |C|
    // 100 |K and C| / |C|; 0 where nothing was communicated.
    double overlap_percent() const {
        return communication() > 0
                   ? 100.0 * static_cast<double>(overlapped) / static_cast<double>(communication())
                   : 0.0;
    }
};

// Of the parts over `steps` steps: their means.
struct MeanOverlap {
    OverlapParts parts;
    double steps = 1;
};
Fields<MeanOverlap> overlap_fields();

struct StepOverlap {
    std::int64_t number = 0;
    OverlapParts parts;  // within the step's window
};

struct RankOverlap {
    int rank = 0;
    std::vector<StepOverlap> steps;  // the kept steps
    std::int64_t cut_steps = 0;      // last steps left out because they were cut off
    OverlapParts sum;                // over those steps
    // Within the rank's first to last device event, in no step's window or in several: all of the trace, or
    // of the time range where one is selected. Not narrowed by selected steps.
    OverlapParts device_time;
    // The mean of a part over the steps, in us.
    double mean_us(std::int64_t ns) const {
        return steps.empty() ? 0.0 : static_cast<double>(ns) * 1e-3 / static_cast<double>(steps.size());
    }
};

struct OverlapReport {
    std::vector<RankOverlap> ranks;
};

OverlapReport overlap_report(const Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces
