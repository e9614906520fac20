// Step by step: each step's duration, how its time was spent, and which step was slowest on which rank.
// Definitions: docs/definitions.md, "Execution Summary". Times in nanoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/time/summary.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct StepDetail {
    StepSummary summary;  // number, window and its split
    // The step on the host; with a time range, the part within it, and equal values if there is none.
    std::int64_t host_start = 0, host_end = 0;
    std::int64_t device_events = 0;  // launched in the step; with a time range, also started within it
    std::int64_t device_busy = 0;    // union of all device events within the window
    std::optional<double> loss;      // if the run recorded it
    std::int64_t window() const { return summary.window_end - summary.window_start; }
};

struct RankStepDetails {
    int rank = 0;
    std::vector<StepDetail> steps;  // the kept steps
    std::int64_t cut_steps = 0;
    // Index into steps: the longest window, the first of equals; -1: there is none, or all are alike.
    std::int64_t slowest = -1;
    double median_window = 0;  // the summary's median, which may exclude the trace's first step
    bool on_device = true;     // false: nothing is recorded on the rank's device
    bool knows(TimeCategory c) const { return on_device || c > TimeCategory::communication; }
};

// One step over the ranks that kept it; only if there are several ranks.
struct StepAcrossRanks {
    std::int64_t number = 0;
    int slowest_rank = -1;  // the rank with the longest window, the first of equals; -1: all are alike
    std::int64_t longest = 0, shortest = 0;
};

// Times are alike, and none is the slowest, if the longest is less than 0.05 % above the shortest: a ratio
// that is printed as 1.000.
inline bool are_alike(double longest, double shortest) {
    return longest < shortest * 1.0005 || longest == shortest;
}

struct StepsReport {
    std::vector<RankStepDetails> ranks;
    std::vector<StepAcrossRanks> across;  // by step number
};

// A step with its rank, as tables show it.
struct StepOfRank {
    const RankStepDetails& rank;
    const StepDetail& step;

    bool slowest() const {
        return rank.slowest >= 0 && &step == &rank.steps[static_cast<std::size_t>(rank.slowest)];
    }
    // The difference of the window from the rank's median window; none without a median.
    std::optional<double> difference_percent() const;
};
Fields<StepOfRank> step_fields();
Fields<StepAcrossRanks> step_across_fields();
// The rows of a rank.
std::vector<StepOfRank> step_rows(const RankStepDetails& rank);

StepsReport steps_report(const store::Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces::analysis
