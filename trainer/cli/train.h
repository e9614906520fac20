// What shardscope-train does with a checked job: print its Plan, or train and report.
#pragma once

#include "trainer/job/job.h"

namespace shardscope::trainer {

struct TrainOptions {
    bool json = false;
    bool dry_run = false;
};

// Returns the exit status: 0; 1 where the trace or a checkpoint could not be written to its end; 128 + n
// where signal n stopped the run before its last step. Throws JobError, DataError, CheckpointError,
// traces::StoreError (before the first step) and kernels::BlasError, and RunError for a run that could not go
// on: its trace is whole.
int train(const Job& job, const TrainOptions& options);

}  // namespace shardscope::trainer
