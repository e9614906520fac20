// Runs of one program at several sizes: the speed-up, the efficiency, and what grew. Definition:
// docs/definitions.md, "Throughput and scaling". Times in microseconds, means over the steps and ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/time/summary.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct OperationTime {
    schema::Operation operation = schema::Operation::other;
    double count = 0, bytes = 0, us = 0, transfer_us = 0;  // of one rank in a step
};

struct ScalingRun {
    std::string file;
    int ranks = 0;  // of the job; the trace has ranks_in_trace of them
    int ranks_in_trace = 0;
    std::int64_t steps = 0;  // kept, of the rank with the most
    double step_us = 0;
    double samples_per_step = 0, tokens_per_step = 0;     // of all ranks; 0: not in the configuration
    std::array<double, kTimeCategories> categories_us{};  // NaN: no rank recorded its device
    std::vector<OperationTime> operations;

    // Differences from the baseline's job other than its size, each as "key (the baseline's value, the
    // run's)".
    std::vector<std::string> differs;
    bool same_model =
        true;  // false: the runs train different models, so nothing is compared with the baseline

    // Relative to the baseline; 0 if the samples of either are unknown.
    double speed_up = 0;
    double efficiency = 0;  // speed-up / (ranks / the baseline's ranks)
    int grew = -1;          // TimeCategory that grew most per step over the baseline; -1: none grew
    double grew_us = 0;

    double us_of(schema::Operation operation) const;  // per step
    double samples_per_second() const { return step_us > 0 ? samples_per_step / step_us * 1e6 : 0; }
    double tokens_per_second() const { return step_us > 0 ? tokens_per_step / step_us * 1e6 : 0; }
};

struct ScalingReport {
    std::vector<ScalingRun> runs;  // by ranks, smallest first
    std::size_t baseline = 0;      // index of the run with the fewest ranks; of several, the first given
};

Fields<ScalingRun> scaling_fields();
Fields<OperationTime> operation_time_fields();

// Samples of a step = batch x ranks x accumulation ("data.batch", "train.accumulation" of the run's
// configuration); tokens = samples x "model.context" for a text model. The number of ranks of a job is the
// largest of those of the trace, of its configuration and of its largest communicator.
ScalingReport scaling_report(const std::vector<const store::Trace*>& traces, const Selection& selection = {});

}  // namespace shardscope::traces::analysis
