// Runs of one program at several sizes: how much faster, how efficiently, and what grew. Definition:
// docs/definitions.md, "Throughput and scaling". Times in microseconds, mean of a step and over the ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/time/summary.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

struct OperationTime {
    Operation operation = Operation::other;
    double count = 0, bytes = 0, us = 0, transfer_us = 0;  // of one rank in a step
};

struct ScalingRun {
    std::string file;
    int ranks = 0;  // of the job; ranks_in_trace of them are in the trace
    int ranks_in_trace = 0;
    std::int64_t steps = 0;  // kept, of the rank with the most
    double step_us = 0;
    double samples_per_step = 0, tokens_per_step = 0;     // of all ranks; 0: the configuration does not tell
    std::array<double, kTimeCategories> categories_us{};  // not a number: no rank recorded its device
    std::vector<OperationTime> operations;

    // What differs from the baseline's job beside its size, each as "key (the baseline's value, the run's)".
    std::vector<std::string> differs;
    bool same_model =
        true;  // false: the runs train different models, and nothing is said against the baseline

    // Against the baseline; 0 where the samples of either are not known.
    double speed_up = 0;
    double efficiency = 0;  // speed-up / (ranks / the baseline's ranks)
    int grew = -1;          // TimeCategory that grew most in a step against the baseline; -1: none did
    double grew_us = 0;

    double samples_per_second() const { return step_us > 0 ? samples_per_step / step_us * 1e6 : 0; }
    double tokens_per_second() const { return step_us > 0 ? tokens_per_step / step_us * 1e6 : 0; }
};

struct ScalingReport {
    std::vector<ScalingRun> runs;  // by ranks, fewest first
    std::size_t baseline = 0;      // index of the run with the fewest ranks, the first given of such
};

// Samples of a step = batch x ranks x accumulation ("data.batch", "train.accumulation" of the run's
// configuration); tokens = samples x "model.context" where the model is one of text. The ranks of a job are
// those of the trace, of its configuration or of its largest communicator, whichever are most.
ScalingReport scaling_report(const std::vector<const Trace*>& traces, const Selection& selection = {});

}  // namespace shardscope::traces
