// Temporal breakdown: what the device did from its first event to its last. Definition: docs/definitions.md,
// "Temporal breakdown" (the parts of Holistic Trace Analysis, without its rounding). Times in nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct TemporalParts {
    Interval time;                           // from the first to the last device event
    std::int64_t idle = 0;                   // no device event ran
    std::int64_t compute = 0;                // union of compute kernels
    std::int64_t exposed_communication = 0;  // outside them
    std::int64_t exposed_memory = 0;         // memcpy and memset outside compute and communication
    std::int64_t whole() const { return idle + compute + exposed_communication + exposed_memory; }
    // What Holistic Trace Analysis calls non_compute.
    std::int64_t non_compute() const { return exposed_communication + exposed_memory; }
};

Fields<TemporalParts> temporal_fields();

struct StepTemporal {
    std::int64_t number = 0;
    TemporalParts parts;  // of the device time inside the step's window
};

struct RankTemporal {
    int rank = 0;
    // Of the trace, or of the selected time range. With steps selected: the sum over those steps, and `time`
    // extends from the first to the last of them.
    TemporalParts whole;
    std::vector<StepTemporal> steps;  // the kept steps with any device event
    std::int64_t cut_steps = 0;
};

struct TemporalReport {
    std::vector<RankTemporal> ranks;
};

TemporalReport temporal_breakdown(const store::Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces::analysis
