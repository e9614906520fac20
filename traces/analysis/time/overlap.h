// How much of the communication ran during compute. Definition: docs/definitions.md, "Overlap". Times in
// nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// K is the union of compute kernels, C that of communication, W the time:
struct OverlapParts {
    std::int64_t computation = 0;            // |K \ C|
    std::int64_t overlapped = 0;             // |K and C|
    std::int64_t exposed_communication = 0;  // |C \ K|
    std::int64_t other = 0;                  // |W| - |K or C|: copies and idle time
    std::int64_t whole() const { return computation + overlapped + exposed_communication + other; }  // |W|
    std::int64_t communication() const { return overlapped + exposed_communication; }                // |C|
    // 100 |K and C| / |C|; 0 without communication.
    double overlap_percent() const {
        return communication() > 0
                   ? 100.0 * static_cast<double>(overlapped) / static_cast<double>(communication())
                   : 0.0;
    }
};

// The parts divided by the number of `steps`: means.
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
    std::int64_t cut_steps = 0;      // last steps omitted because they were cut off
    OverlapParts sum;                // over those steps
    // From the rank's first device event to its last, whatever the steps: in the whole trace, or in the
    // selected time range. Selected steps do not limit it.
    OverlapParts device_time;
    // The mean of a part over the steps, in us.
    double mean_us(std::int64_t ns) const {
        return steps.empty() ? 0.0 : static_cast<double>(ns) * 1e-3 / static_cast<double>(steps.size());
    }
};

struct OverlapReport {
    std::vector<RankOverlap> ranks;

    bool any_communication() const;
    double mean_exposed_us() const;       // per step, over the ranks
    double mean_overlap_percent() const;  // over the ranks
};

OverlapReport overlap_report(const store::Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces::analysis
